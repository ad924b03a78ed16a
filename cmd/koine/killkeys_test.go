package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"koine/kg"
)

// newWitnesses makes those of one data directory, and the keys that they use.
func (k *killings) newWitnesses(c asker) (all []witness) {
	key := func(agent, roles string) string {
		made, err := askForKey(c, k.admin, agent, roles)
		if err != nil {
			k.t.Fatal(err)
		}
		return made.Secret
	}
	dora, chen, even, odd := key("dora", ""), key("chen", "reviewer"), key("even", ""), key("odd", "")
	for i := range 2 {
		dice := func() *rand.Rand { return rand.New(rand.NewPCG(k.dice.Uint64(), uint64(i))) }
		all = append(all,
			&keysWitness{name: fmt.Sprint("holder", i), dice: dice(), admin: k.admin},
			&policyWitness{graph: fmt.Sprint("urn:kill:graph", i), admin: k.admin, readers: [2]string{even, odd}},
			&reviewWitness{name: fmt.Sprint("pay", i), dice: dice(), author: dora, reviewer: chen, proposals: map[string]*heldUpdate{}},
			&updateWitness{name: fmt.Sprint("update", i), dice: dice(), agent: dora, acknowledged: map[string]kg.Revision{}},
			&taskWitness{name: fmt.Sprint("clerk", i), dice: dice(), creator: dora, handler: key(fmt.Sprint("clerk", i), "")},
		)
	}
	return all
}

type keyMade struct {
	Key    struct{ ID string }
	Secret string
}

func askForKey(c asker, admin, agent, roles string) (keyMade, error) {
	var out struct{ CreateApiKey keyMade }
	err := c.ask(admin, fmt.Sprintf(`mutation { createApiKey(input: {agentId: %q, roles: %q}) { key { id } secret } }`, agent, strings.Fields(roles)), &out)
	return out.CreateApiKey, err
}

// keysWitness creates keys, each for an agent and with a role of its own, rotates them
// without an overlap, and revokes them.
type keysWitness struct {
	name, admin string
	dice        *rand.Rand
	made        int
	keys        []*heldKey
	// Interrupted requests.
	making           string // the agent of a key that is made
	ending, rotating *heldKey
}

// heldKey is a key that is known to be there.
type heldKey struct {
	id, agent string
	secret    string // "" if the answer with it was lost
	ended     bool
}

func (w *keysWitness) act(c asker) error {
	switch key := w.live(); {
	case key == nil || w.dice.IntN(2) == 0:
		return w.make(c)
	case w.dice.IntN(2) == 0:
		w.ending = key
		var out struct {
			RevokeApiKey struct{ Key struct{ State string } }
		}
		if err := c.ask(w.admin, fmt.Sprintf(`mutation { revokeApiKey(input: {keyId: %q}) { key { state } } }`, key.id), &out); err != nil {
			return err
		}
		w.ending, key.ended = nil, true
	default:
		w.rotating = key
		var out struct{ RotateApiKey keyMade }
		if err := c.ask(w.admin, fmt.Sprintf(`mutation { rotateApiKey(input: {keyId: %q}) { key { id } secret } }`, key.id), &out); err != nil {
			return err
		}
		w.rotating, key.ended = nil, true
		w.keys = append(w.keys, &heldKey{id: out.RotateApiKey.Key.ID, agent: key.agent, secret: out.RotateApiKey.Secret})
	}
	return nil
}

func (w *keysWitness) make(c asker) error {
	w.made++
	w.making = fmt.Sprint("agent://", w.name, "-", w.made)
	made, err := askForKey(c, w.admin, w.making, w.role(w.making))
	if err != nil {
		return err
	}
	w.keys = append(w.keys, &heldKey{id: made.Key.ID, agent: w.making, secret: made.Secret})
	w.making = ""
	return nil
}

// role is that of an agent's keys.
func (w *keysWitness) role(agent string) string { return "role-of-" + agent[len("agent://"):] }

// live is a key that was neither revoked nor rotated away; nil for none.
func (w *keysWitness) live() *heldKey {
	for range 4 {
		if len(w.keys) > 0 {
			if key := w.keys[w.dice.IntN(len(w.keys))]; !key.ended {
				return key
			}
		}
	}
	return nil
}

type listedKey struct {
	ID, Agent, State, ReplacedBy string
	Roles                        []string
}

func (w *keysWitness) check(c asker) error {
	listed, err := w.listed(c)
	if err != nil {
		return err
	}
	if w.ending != nil {
		w.ending.ended, w.ending = listed[w.ending.id].State != "ACTIVE", nil
	}
	lost := w.making
	if old := w.rotating; old != nil {
		now := listed[old.id]
		if _, there := listed[now.ReplacedBy]; there != (now.State != "ACTIVE") {
			return fmt.Errorf("a rotation is half done: %+v", now)
		}
		if old.ended = now.State != "ACTIVE"; old.ended {
			w.keys = append(w.keys, &heldKey{id: now.ReplacedBy, agent: old.agent})
		}
		w.rotating = nil
	}
	for _, key := range w.keys {
		now, there := listed[key.id]
		if !there || now.Agent != key.agent || len(now.Roles) != 1 || now.Roles[0] != w.role(key.agent) || (now.State != "ACTIVE") != key.ended {
			return fmt.Errorf("the key %+v is listed as %+v", *key, now)
		}
		delete(listed, key.id)
	}
	for _, now := range listed {
		if now.Agent != lost || len(now.Roles) != 1 || now.Roles[0] != w.role(lost) {
			return fmt.Errorf("nobody asked for the key %+v", now)
		}
		w.keys, lost = append(w.keys, &heldKey{id: now.ID, agent: now.Agent}), ""
	}
	w.making = ""
	return w.use(c)
}

// listed is all keys of this witness, by id.
func (w *keysWitness) listed(c asker) (map[string]listedKey, error) {
	all := map[string]listedKey{}
	for after := ""; ; {
		var out struct {
			ApiKeys struct {
				Nodes    []listedKey
				PageInfo struct {
					HasNextPage bool
					EndCursor   string
				}
			}
		}
		if err := c.ask(w.admin, `{ apiKeys(includeEnded: true, first: 1000`+after+`) { nodes { id agent: agentId roles state replacedBy } pageInfo { hasNextPage endCursor } } }`, &out); err != nil {
			return nil, err
		}
		for _, key := range out.ApiKeys.Nodes {
			if strings.HasPrefix(key.Agent, "agent://"+w.name+"-") {
				all[key.ID] = key
			}
		}
		if !out.ApiKeys.PageInfo.HasNextPage {
			return all, nil
		}
		after = fmt.Sprintf(`, after: %q`, out.ApiKeys.PageInfo.EndCursor)
	}
}

// use shows keys to the server, the newest and some of the others: those that
// ended are refused, and the others are those of their agents.
func (w *keysWitness) use(c asker) error {
	for _, i := range newest(w.dice, len(w.keys)) {
		key := w.keys[i]
		if key.secret == "" {
			continue
		}
		var out struct{ Me struct{ ID string } }
		err := c.ask(key.secret, `{ me { id } }`, &out)
		if key.ended && codeOf(err) != "UNAUTHENTICATED" || !key.ended && (err != nil || out.Me.ID != key.agent) {
			return fmt.Errorf("the key %s of %s (ended: %t) is %q: %v", key.id, key.agent, key.ended, out.Me.ID, err)
		}
	}
	return nil
}

// replay has nothing to add: the log has hashes.
func (w *keysWitness) replay([]*kg.Commit) error { return nil }

// newest gives up to sampled of the newest places of a list, and as many of all.
func newest(dice *rand.Rand, n int) (places []int) {
	for i := range min(n, sampled) {
		places = append(places, n-1-i, dice.IntN(n))
	}
	return places
}
