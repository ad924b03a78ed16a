package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/scope"
	"koine/cmd/koine/internal/cli"
)

// tierFlags assign channel tiers to roles.
type tierFlags struct {
	Tier map[string]string `help:"Channel limits of a role, or of all other principals (*): free, standard, unlimited, or bounds such as messages:120,streams:5,channels:20,bytes:65536; may be repeated." placeholder:"ROLE=TIER"`
}

// otherRoles stands for principals without any of the other roles.
const otherRoles = "*"

// maxTiers bounds the roles with a tier, maxTierBound the streams and channels of a tier.
const (
	maxTiers     = 1000
	maxTierBound = 1_000_000
)

// tierBound is a bound of a tier and its name on the command line.
type tierBound struct {
	name string
	most int
	of   func(*channels.Tier) *int
}

var tierBounds = []tierBound{
	{"messages", channel.MaxPerMinute, func(t *channels.Tier) *int { return &t.MessagesPerMinute }},
	{"streams", maxTierBound, func(t *channels.Tier) *int { return &t.Streams }},
	{"channels", maxTierBound, func(t *channels.Tier) *int { return &t.Channels }},
	{"bytes", channel.MaxMessageBytes, func(t *channels.Tier) *int { return &t.MessageBytes }},
}

// applyTiers adds the tiers of the flags to the options.
func (f tierFlags) applyTiers(o channels.Options) (channels.Options, error) {
	if len(f.Tier) > maxTiers {
		return o, cli.Usagef("--tier accepts at most %d roles", maxTiers)
	}
	o.Tiers = map[string]channels.Tier{}
	for _, role := range slices.Sorted(maps.Keys(f.Tier)) {
		if role == "" || !utf8.ValidString(role) || utf8.RuneCountInString(role) > scope.MaxRoleRunes {
			return o, cli.Usagef("--tier %.60q: a role has between 1 and %d characters", role, scope.MaxRoleRunes)
		}
		t, err := parseTier(f.Tier[role])
		if err != nil {
			return o, cli.Usagef("--tier %s: %w", role, err)
		}
		if role == otherRoles {
			t.Name = cmp.Or(t.Name, "default")
			o.Tier = t
			continue
		}
		t.Name = cmp.Or(t.Name, role)
		o.Tiers[role] = t
	}
	return o, nil
}

// parseTier parses the name of a tier, a list of bounds, or a name followed by bounds that
// override it. Only a tier without overrides keeps the name.
func parseTier(text string) (t channels.Tier, err error) {
	seen := map[string]bool{}
	for i, item := range strings.Split(text, ",") {
		item = strings.TrimSpace(item)
		if named, ok := lookupTier(item); ok && i == 0 {
			t = named
			continue
		}
		name, number, ok := strings.Cut(item, ":")
		at := slices.IndexFunc(tierBounds, func(b tierBound) bool { return b.name == name })
		switch {
		case !ok && i == 0:
			return t, fmt.Errorf("unknown tier %.60q: use free, standard, unlimited, or bounds such as messages:120", item)
		case !ok || at < 0:
			return t, fmt.Errorf("unknown bound %.60q: use messages (per minute), streams, channels or bytes (of a message), such as messages:120", item)
		case seen[name]:
			return t, fmt.Errorf("%s is given twice", name)
		}
		bound := tierBounds[at]
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n > bound.most {
			return t, fmt.Errorf("%s must be between 0 (no bound) and %d", name, bound.most)
		}
		seen[name], t.Name, *bound.of(&t) = true, "", n
	}
	return t, nil
}

func lookupTier(name string) (channels.Tier, bool) {
	for _, t := range []channels.Tier{channels.Free, channels.Standard, channels.Unlimited} {
		if t.Name == name {
			return t, true
		}
	}
	return channels.Tier{}, false
}
