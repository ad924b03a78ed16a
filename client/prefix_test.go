package client_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"koine/client"
	"koine/internal/servertest"
)

// Behind a proxy that serves it below a path the client reaches all of a server that
// knows its address.
func TestBelowAPath(t *testing.T) {
	var at atomic.Pointer[httputil.ReverseProxy]
	proxy := httptest.NewServer(http.StripPrefix("/team/koine", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { at.Load().ServeHTTP(w, r) })))
	defer proxy.Close()
	address := proxy.URL + "/team/koine"
	behind, err := url.Parse(servertest.Start(t, "--demo", "--public-url", address).URL)
	if err != nil {
		t.Fatal(err)
	}
	at.Store(httputil.NewSingleHostReverseProxy(behind))

	ctx, c := bounded(t), open(t, address+"/", "bot")
	if c.Address() != address {
		t.Errorf("the address is %s", c.Address())
	}
	if _, err := c.Query(ctx, client.Query{Text: "{ revision }"}, nil); err != nil {
		t.Error(err)
	}
	var me struct{ Me struct{ ID string } }
	if err := c.GraphQL(ctx, "{ me { id } }", nil, &me); err != nil || me.Me.ID != "agent://bot" {
		t.Errorf("%+v %v", me, err)
	}
	response, err := c.Do(ctx, http.MethodGet, "/graphql/schema", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if err := c.RegisterAgent(ctx, "bot", map[string]any{"name": "Bot", "version": "1"}); err != nil {
		t.Error(err)
	}
	bot, err := client.OpenAgent(ctx, address, "bot", client.Options{Agent: "bot"})
	if err != nil {
		t.Fatal(err)
	}
	if err := bot.DeregisterAgent(ctx, "bot"); err != nil { // of the server, wherever the client was opened
		t.Error(err)
	}
	if !json.Valid(bot.Card().Raw) || bot.Card().Name != "Bot" {
		t.Errorf("%s", bot.Card().Raw)
	}
}
