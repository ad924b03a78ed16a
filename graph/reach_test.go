package graph_test

import (
	"reflect"
	"strings"
	"testing"

	"koine/channels"
	"koine/channels/receipts"
	"koine/graph"
)

// reached names, for each method of the channels service and of its parts, the fields that
// reach it, each "Type.field"; or, behind a colon, why there is none.
var reached = map[string]string{
	"Create":               "Mutation.createChannel",
	"CreateIn":             "Mutation.createChannel(scopeId)",
	"Get":                  "Query.channel",
	"List":                 "Query.channels Scope.channels",
	"Update":               "Mutation.updateChannel",
	"Delete":               "Mutation.deleteChannel",
	"TierOf":               "Principal.tier",
	"Members.Restrictions": "Channel.restrictions Query.globalRestrictions",
	"SequenceAt":           ": it is how adapters turn positions into sequences; messagePublished(resume) does it itself",
	"Guard":                ": it is part of how a store is opened",
	"FollowAgent":          ": AgentChat's sockets read it; messagePublished(where: {joined: true}) and channelChanged have its parts",
	"Follow":               ": it is part of how a store is opened",
	"Load":                 ": it is part of how a store is opened",
	"Close":                ": it is part of how a store is closed",
	"Receipts.Summaries":   ": protocols with one state of a message show it; Message.receipts has all",
	"Members.Add":          "Mutation.addChannelMember",
	"Members.Leave":        "Mutation.leaveChannel",
	"Members.Join":         "Mutation.joinChannel",
	"Members.Invite":       "Mutation.inviteAgent",
	"Members.Accept":       "Mutation.answerInvitation",
	"Members.Decline":      "Mutation.answerInvitation",
	"Members.Withdraw":     "Mutation.withdrawInvitation",
	"Members.Ban":          "Mutation.restrictAgent",
	"Members.Unban":        "Mutation.liftRestriction",
	"Members.Mute":         "Mutation.restrictAgent",
	"Members.Unmute":       "Mutation.liftRestriction",
	"Scopes.Get":           "Query.scope Channel.scope Scope.parent",
	"Scopes.List":          "Query.scopes Scope.tasks",
	"Scopes.End":           "Mutation.endScope",
	"History":              "Channel.messages",
	"Stream":               "Subscription.messagePublished",
	"Message":              "Query.message",
	"Replies":              "Message.replies",
	"Publish":              "Mutation.publishMessage",

	"Members.Remove":          "Mutation.removeChannelMember",
	"CloseChannel":            "Mutation.closeChannel",
	"Members.RemoveAgent":     "Mutation.removeAgent",
	"Members.Invitations":     "Channel.invitations",
	"Scopes.Create":           "Mutation.createScope",
	"Scopes.Update":           "Mutation.updateScope",
	"Scopes.Events":           "Scope.events",
	"Scopes.VerifyEvents":     "Scope.verifyEvents",
	"PublishByName":           "Mutation.publishMessage(scopeId)",
	"JudgedMessages":          ": it is how the operator's rules look at messages",
	"Receipts.Acknowledge":    "Mutation.acknowledgeMessages",
	"Retract":                 "Mutation.retractMessage",
	"Receipts.List":           "Message.receipts",
	"Receipts.Own":            "Message.receiptStatus",
	"Receipts.ReadMarker":     "Channel.readMarker",
	"Receipts.Unread":         "Channel.unread",
	"Counts":                  "Channel.messageCounts",
	"Ask":                     "Mutation.ask",
	"AskAll":                  "Mutation.ask(wait)",
	"Inbox":                   "Query.inbox",
	"ListPage":                "Query.channels Scope.channels",
	"CountChannels":           "ChannelConnection.totalCount",
	"HistoryPage":             "Channel.messages",
	"CountHistory":            "MessageConnection.totalCount",
	"RepliesAfter":            "Message.replies",
	"Scopes.ListPage":         "Query.scopes Scope.tasks",
	"Scopes.CountScopes":      "ScopeConnection.totalCount",
	"Scopes.LastEvent":        "ScopeEventConnection.totalCount",
	"Scopes.CreateWith":       ": it is Scopes.Create for packages that keep more of a scope",
	"Scopes.Change":           ": it is how packages that keep more of a scope change it",
	"Scopes.EndIn":            ": it is the part of Scopes.End within a change",
	"Scopes.LevelOf":          ": the errors of other methods say it",
	"Scopes.OfChannel":        ": it is how protocols that name the scope of a channel check it without reading the channel",
	"Scopes.TaskByExternalID": ": protocols with ids of their own call it; Intent.tasks shows them",
	"Scopes.ListEvents":       ": Scope.events pages them in order",
	"Scopes.EventCopy":        "ScopeEvent.copy",
	"Signal":                  "Mutation.sendSignal",
	"Signals":                 "Subscription.signalSent",
	"StreamAll":               "Subscription.messagePublished(where)",
	"StreamEvents":            "Subscription.channelChanged",
	"StreamInbox":             "Subscription.messagePublished(where)",
	"StreamScope":             "Subscription.messagePublished(where)",
	"Scopes":                  ": its methods are listed",
	"Members":                 ": its methods are listed",
	"Receipts":                ": its methods are listed",
	"Receipts.Open":           ": it is part of how a store is opened",
}

// TestEveryMethodIsReached keeps the list complete: GraphQL reaches every method of the
// domain.
func TestEveryMethodIsReached(t *testing.T) {
	s := loadSchema(t, newBench(t, graph.Options{}).engine.SDL())
	parts := map[string]reflect.Type{
		"": reflect.TypeFor[*channels.Service](), "Scopes.": reflect.TypeFor[*channels.Scopes](),
		"Members.": reflect.TypeFor[*channels.Members](), "Receipts.": reflect.TypeFor[*receipts.Receipts](),
	}
	there := map[string]bool{}
	for part, of := range parts {
		for i := range of.NumMethod() {
			there[part+of.Method(i).Name] = true
		}
	}
	for name := range there {
		fields, ok := reached[name]
		if !ok {
			t.Errorf("channels.Service.%s is missing from reached: name the fields that call it, or \": \" and why there are none", name)
		}
		if why, none := strings.CutPrefix(fields, ": "); none && why != "" {
			continue
		}
		for _, field := range strings.Fields(fields) {
			field, arg, _ := strings.Cut(strings.TrimSuffix(field, ")"), "(")
			of, name, _ := strings.Cut(field, ".")
			def := s.Types[of].Fields.ForName(name)
			switch {
			case def == nil:
				t.Errorf("there is no %s", field)
			case arg != "" && def.Arguments.ForName(arg) == nil && s.Types[def.Arguments[0].Type.Name()].Fields.ForName(arg) == nil:
				t.Errorf("%s takes no %s", field, arg)
			}
		}
	}
	for name := range reached {
		if !there[name] {
			t.Errorf("there is no channels.Service.%s any more", name)
		}
	}
}
