// What an application with Relay may write: fragments that can be fetched anew by id, and
// lists that are read page by page, forward and backward.
import { graphql } from 'react-relay';

export const entity = graphql`
  fragment refetchable_entity on Entity
  @refetchable(queryName: "refetchableEntityQuery")
  @argumentDefinitions(lang: { type: "[String!]" }) {
    label(lang: $lang)
    types
  }
`;

export const channel = graphql`
  fragment refetchable_channel on Channel @refetchable(queryName: "refetchableChannelQuery") {
    name
    entity {
      ...refetchable_entity
    }
  }
`;

export const message = graphql`
  fragment refetchable_message on Message @refetchable(queryName: "refetchableMessageQuery") {
    text
    facts {
      nodes {
        subject {
          ...refetchable_entity
        }
        object {
          ... on Literal {
            value
          }
        }
      }
    }
  }
`;

export const query = graphql`
  query refetchableQuery($iri: IRI!, $channel: ID!, $message: ID!) {
    entity(iri: $iri) {
      ...refetchable_entity
    }
    channel(id: $channel) {
      ...refetchable_channel
    }
    message(id: $message) {
      ...refetchable_message
    }
  }
`;

export const channels = graphql`
  fragment refetchable_channels on Query
  @refetchable(queryName: "refetchableChannelsQuery")
  @argumentDefinitions(count: { type: "Int", defaultValue: 10 }, cursor: { type: "Cursor" }) {
    channels(first: $count, after: $cursor) @connection(key: "refetchable_channels") {
      edges {
        node {
          ...refetchable_channel
        }
      }
    }
  }
`;

export const messages = graphql`
  fragment refetchable_messages on Channel
  @refetchable(queryName: "refetchableMessagesQuery")
  @argumentDefinitions(
    first: { type: "Int" }
    after: { type: "Cursor" }
    last: { type: "Int", defaultValue: 20 }
    before: { type: "Cursor" }
  ) {
    messages(first: $first, after: $after, last: $last, before: $before) @connection(key: "refetchable_messages") {
      edges {
        node {
          ...refetchable_message
          author {
            name
          }
        }
      }
    }
  }
`;

export const page = graphql`
  query refetchablePageQuery($channel: ID!) {
    ...refetchable_channels
    channel(id: $channel) {
      ...refetchable_messages
    }
  }
`;
