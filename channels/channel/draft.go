package channel

import (
	"encoding/json"
	"time"

	"koine/channels/scope"
	"koine/kg"
)

// Draft describes a channel to create.
type Draft struct {
	Name       string
	Topic      string
	Kind       Kind       // Ordered if ""
	Visibility Visibility // Private if ""
	Rights     Rights
	MaxMembers int // 0 for the server's limit
	Limits     Limits
	// Members are the members besides the caller, which becomes an owner. Joined is
	// ignored.
	Members      []Member
	Metadata     []byte        // a JSON object, or nil
	ExpireAfter  time.Duration // see Channel
	KeepMessages int64
	Audit        bool // for a channel in a scope
	// MemberPolicy applies to a channel in a scope (CreateIn); Explicit if "".
	MemberPolicy MemberPolicy
	// IdempotencyKey, if set, makes a repeated request return the channel that the
	// first one created. Keys are per caller and live as long as the channel.
	IdempotencyKey string
}

// ListQuery selects the channels to list.
type ListQuery struct {
	// PageSize is clamped to 1…MaxPage; DefaultPage if 0.
	PageSize int
	// PageToken is the token returned with the previous page.
	PageToken string
	// Behind is the id of the channel behind which the page of ListPage begins, "" for
	// the first page. With Backward the newest channels come first. List sets Behind
	// from PageToken.
	Behind   ID
	Backward bool
	// Kind, Visibility and Member, if set, exclude other channels.
	Kind       Kind
	Visibility Visibility
	Member     kg.AgentID
	// Invited restricts the list to channels that the caller is invited to.
	Invited bool
	// Scope, if set, lists all channels of the scope that the caller can find. Without
	// it, channels that the caller takes part in through their scope are not listed.
	Scope scope.ID
}

// Update is a change of a channel. Nil fields are unchanged.
type Update struct {
	// ExpectedVersion must be the current version of the channel.
	ExpectedVersion int64
	Name, Topic     *string
	// Set and Remove change members of the metadata.
	Set    map[string]json.RawMessage
	Remove []string
	// Rights replaces the channel's explicit rights, MaxMembers and Limits its limits.
	// They require an owner.
	Rights     *Rights
	MaxMembers *int
	Limits     *Limits
	// ExpireAfter is the idle timeout; 0 means never. It requires an owner.
	ExpireAfter *time.Duration
	// KeepMessages of 0 keeps all; after a reduction, excess messages are evicted as
	// new ones arrive. KeepMessages and Audit require an owner.
	KeepMessages *int64
	Audit        *bool
	// MemberPolicy changes the participation in a channel of a scope: an agent that loses the channel by
	// it, loses it with the commit. It requires an owner. A right that is granted to
	// everybody requires ByScope.
	MemberPolicy *MemberPolicy
}
