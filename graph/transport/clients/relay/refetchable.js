// What an application with Relay may write: fragments that can be fetched anew by id.
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
