package graph_test

import (
	"reflect"
	"strings"
	"testing"

	"koine/channels"
	"koine/graph"
)

// reached names, for each method of the channels service, the fields that reach it, each
// "Type.field"; or, behind a colon, why there is none.
var reached = map[string]string{
	"Create":             "Mutation.createChannel",
	"CreateIn":           "Mutation.createChannel(scopeId)",
	"Get":                "Query.channel",
	"List":               "Query.channels Scope.channels",
	"Update":             "Mutation.updateChannel",
	"Delete":             "Mutation.deleteChannel",
	"TierOf":             "Principal.tier",
	"Restrictions":       "Channel.restrictions Query.globalRestrictions",
	"SequenceAt":         ": it is how adapters turn positions into sequences; messagePublished(resume) does it itself",
	"Guard":              ": it is part of how a store is opened",
	"Follow":             ": it is part of how a store is opened",
	"Load":               ": it is part of how a store is opened",
	"Close":              ": it is part of how a store is closed",
	"AddMember":          "Mutation.addChannelMember",
	"Leave":              "Mutation.leaveChannel",
	"Join":               "Mutation.joinChannel",
	"Invite":             "Mutation.inviteMember",
	"AcceptInvitation":   "Mutation.acceptInvitation",
	"DeclineInvitation":  "Mutation.declineInvitation",
	"WithdrawInvitation": "Mutation.withdrawInvitation",
	"Ban":                "Mutation.banAgent",
	"Unban":              "Mutation.unbanAgent",
	"Mute":               "Mutation.muteAgent",
	"Unmute":             "Mutation.unmuteAgent",
	"GetScope":           "Query.scope Channel.scope Scope.parent",
	"ListScopes":         "Query.scopes Scope.tasks",
	"EndScope":           "Mutation.endScope",
	"History":            "Channel.messages",
	"Stream":             "Subscription.messagePublished",
	"Message":            "Query.message",
	"Replies":            "Message.replies",
	"Publish":            "Mutation.publishMessage",

	"RemoveMember":   "Mutation.removeChannelMember",
	"CloseChannel":   "Mutation.closeChannel",
	"RemoveAgent":    "Mutation.removeAgent",
	"Invitations":    "Channel.invitations",
	"CreateScope":    "Mutation.createScope",
	"UpdateScope":    "Mutation.updateScope",
	"ScopeEvents":    "Scope.events",
	"VerifyEvents":   "Scope.verifyEvents",
	"PublishByName":  "Mutation.publishMessage(scopeId)",
	"JudgedMessages": ": it is how the operator's rules look at messages",
	"Acknowledge":    "Mutation.acknowledgeMessages",
	"Retract":        "Mutation.retractMessage",
	"Receipts":       "Message.receipts",
	"OwnReceipt":     "Message.receiptStatus",
	"ReadMarker":     "Channel.readMarker",
	"Unread":         "Channel.unread",
	"Counts":         "Channel.messageCounts",
	"Ask":            "Mutation.ask",
	"AskAll":         "Mutation.askAll",
	"Inbox":          "Query.inbox",
	"Signal":         "Mutation.sendSignal",
	"Signals":        "Subscription.signalSent",
	"StreamAll":      "Subscription.memberMessagePublished",
	"StreamEvents":   "Subscription.channelChanged",
	"StreamInbox":    "Subscription.inboxMessagePublished",
	"StreamScope":    "Subscription.scopeMessagePublished",
}

// TestEveryMethodIsReached keeps the list complete: GraphQL reaches every method of the
// domain.
func TestEveryMethodIsReached(t *testing.T) {
	s := loadSchema(t, newBench(t, graph.Options{}).engine.SDL())
	methods := reflect.TypeFor[*channels.Service]()
	for i := range methods.NumMethod() {
		name := methods.Method(i).Name
		fields, ok := reached[name]
		if !ok {
			t.Errorf("channels.Service.%s: through which field is it reached?", name)
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
		if _, there := methods.MethodByName(name); !there {
			t.Errorf("there is no channels.Service.%s any more", name)
		}
	}
}
