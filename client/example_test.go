package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"koine/client"
	"koine/internal/servertest"
)

// demo is where a "koine serve --demo" listens.
func demo() string { return servertest.Demo() }

// The first steps of a program: it finds the agent, queries, and updates.
func Example() {
	if err := doubtFinding(context.Background(), demo()); err != nil {
		log.Fatal(err)
	}
	// Output:
}

func doubtFinding(ctx context.Context, address string) error {
	c, err := client.Open(ctx, address, client.Options{Agent: "dora"})
	if err != nil {
		return err
	}
	var read struct{ Entity struct{ Label string } }
	if _, err := c.Query(ctx, client.Query{Text: `{ entity(iri: "finding:1") { label } }`}, &read); err != nil {
		return err
	}
	doubt := client.Add("finding:1", "lab:quality", client.Text("doubtful")).Certain(0.4)
	_, err = c.Update(ctx, client.Update{Patches: []client.Patch{doubt}, Justification: "Read: " + read.Entity.Label})
	return err
}

// Open reads the agent card. A missing feature is an error before anything is sent.
func ExampleOpen() {
	ctx := context.Background()
	c, err := client.Open(ctx, demo(), client.Options{Agent: "dora", Requires: []client.Capability{client.KnowledgeGraph, client.Channels}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Card().Name, c.Card().Has(client.BaseA2A))

	_, err = client.OpenAgent(ctx, demo(), "koine-does-not-know-me", client.Options{})
	fmt.Println(errors.Is(err, client.Reason("AGENT_NOT_FOUND")))
	// Output:
	// koine true
	// true
}

// The environment has the same meaning for programs as for the command line.
func ExampleEnvironment() {
	os.Setenv("KOINE_URL", demo())
	defer os.Unsetenv("KOINE_URL")
	address, options := client.Environment()
	c, err := client.Open(context.Background(), address, options)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Card().Name)
	// Output: koine
}

// A server with a certificate of one's own, and a bound on how long it may think.
func ExampleOptions_certificate() {
	pem, err := os.ReadFile("authority.pem")
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	transport.ResponseHeaderTimeout = time.Minute
	c, err := client.Open(context.Background(), "https://koine.example", client.Options{
		Key: os.Getenv("KOINE_KEY"), HTTP: &http.Client{Transport: transport},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Card().Name)
}

// A query is GraphQL; its data is read as JSON is.
func ExampleClient_Query() {
	ctx := context.Background()
	c, err := client.Open(ctx, demo(), client.Options{Agent: "dora"})
	if err != nil {
		log.Fatal(err)
	}
	var answer struct {
		Entity struct {
			Label string
			Types []string
		}
	}
	meta, err := c.Query(ctx, client.Query{
		Text:      `query($iri: IRI!) { entity(iri: $iri) { label types } }`,
		Variables: map[string]any{"iri": "finding:1"},
	}, &answer)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Entity.Label, answer.Entity.Types)
	fmt.Println(meta.Revision > 0, meta.Position != "")
	// Output:
	// Water in the crystal costs capacity [https://koine.example/demo/Finding]
	// true true
}

// An update is some patches, all or none, and why.
func ExampleClient_Update() {
	ctx := context.Background()
	c, err := client.Open(ctx, demo(), client.Options{Agent: "dora"})
	if err != nil {
		log.Fatal(err)
	}
	update := client.Update{
		Patches: []client.Patch{
			client.Add("finding:2", "lab:quality", client.Text("doubtful")).Certain(0.4),
			client.Add("finding:2", "rdfs:comment", client.TextIn("Only two runs", "en")).From("chen"),
		},
		Justification:  "Read it again",
		IdempotencyKey: "reread-finding-2",
	}
	for range 2 { // the second time as if the program had been started again
		made, err := c.Update(ctx, update)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(made.VerificationStatus, made.StatementsAffected, made.Replayed)
	}
	// Output:
	// Verified 2 false
	// Verified 2 true
}

// A refusal is an *Error with a reason.
func ExampleError() {
	ctx := context.Background()
	c, err := client.Open(ctx, demo(), client.Options{Agent: "dora"})
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.Update(ctx, client.Update{Patches: []client.Patch{client.Add("finding:2", "lab:quality", client.Text("good")).Certain(1.2)}})
	var refused *client.Error
	fmt.Println(errors.Is(err, client.Invalid), errors.As(err, &refused))
	fmt.Println(refused.Field)
	// Output:
	// true true
	// mutations[0].statement.certainty
}

// A subscription resumes by itself when the connection is lost. A program that stores the
// position also resumes after a restart.
func ExampleClient_Subscribe() {
	ctx := context.Background()
	c, err := client.Open(ctx, demo(), client.Options{Agent: "dora"})
	if err != nil {
		log.Fatal(err)
	}
	say := func(what string) string {
		made, err := c.Update(ctx, client.Update{Patches: []client.Patch{client.Add("finding:2", "lab:said", client.Text(what))}})
		if err != nil {
			log.Fatal(err)
		}
		return made.Position
	}
	// The changes since a position: here after the first of three updates.
	subscription := client.Subscription{
		Query: `subscription { statementChanged(where: {predicate: {eq: "lab:said"}}) { __typename } }`,
		From:  say("one"),
	}
	say("two")
	say("three")
	for range 2 {
		for change, err := range c.Subscribe(ctx, subscription) {
			if err != nil {
				log.Fatal(err)
			}
			if change.Op == client.OpResync {
				continue // earlier events may no longer hold; a snapshot follows
			}
			fmt.Println(change.Op, change.Statement.Object.Value, "by", change.Metadata.Actor)
			subscription.From = change.Metadata.Position // to be kept
			break                                        // as if the program ended here
		}
	}
	// Output:
	// add two by agent://dora
	// add three by agent://dora
}

// Two agents in a channel: one asks, the other answers.
func ExampleClient_Ask() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ann, err := client.Open(ctx, demo(), client.Options{Agent: "ann"})
	if err != nil {
		log.Fatal(err)
	}
	channel, err := ann.CreateChannel(ctx, client.NewChannel{Name: "lab", Members: []client.Member{{Agent: "bob"}}})
	if err != nil {
		log.Fatal(err)
	}
	go func() { // bob, who would be another program
		bob, err := client.Open(ctx, demo(), client.Options{Agent: "bob"})
		if err != nil {
			log.Fatal(err)
		}
		for message, err := range bob.Stream(ctx, channel.ID, client.StreamOptions{}) {
			if err != nil {
				return // ctx has ended
			}
			if message.Type != "request" {
				continue
			}
			if _, err := bob.Respond(ctx, message, client.TextPart("Twice, to "+message.Text())); err != nil {
				return
			}
		}
	}()
	answer, err := ann.Ask(ctx, client.Publication{
		Channel: channel.ID, Recipient: "bob", Parts: []any{client.TextPart("Did you measure it?")},
	}, time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Author, answer.Text())
	// Output: agent://bob Twice, to Did you measure it?
}

// An agent without an address of its own reads its letters from its mailbox.
func ExampleClient_Mailbox() {
	ctx := context.Background()
	clerk, err := client.Open(ctx, demo(), client.Options{Agent: "clerk"})
	if err != nil {
		log.Fatal(err)
	}
	if err := clerk.RegisterAgent(ctx, "clerk", map[string]any{"name": "Clerk", "description": "Counts letters", "version": "1.0"}); err != nil {
		log.Fatal(err)
	}
	go ask(ctx, "clerk", "koine")
	for letter, err := range clerk.Mailbox(ctx, "clerk") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s asks %q\n", letter.From, letter.Text())
		err = clerk.Report(ctx, "clerk", letter.Task.ID, client.Report{
			State:     client.TaskCompleted,
			Artifacts: []client.ReportArtifact{{ID: "count", Parts: []any{client.DataPart(len(letter.Text()))}}},
		})
		if err != nil {
			log.Fatal(err)
		}
		break
	}
	// Output: agent://ann asks "koine"
}

// ask sends a message to an agent behind the hub, as any client of A2A does.
func ask(ctx context.Context, agent, text string) {
	at, err := client.OpenAgent(ctx, demo(), agent, client.Options{Agent: "ann"})
	if err != nil {
		log.Fatal(err)
	}
	official, err := at.A2A(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := official.SendMessage(ctx, &a2a.SendMessageRequest{
		Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(text)),
		Config:  &a2a.SendMessageConfig{ReturnImmediately: true},
	}); err != nil {
		log.Fatal(err)
	}
}

// A2A is the official client: tasks and messages go through it.
func ExampleClient_A2A() {
	ctx := context.Background()
	c, err := client.Open(ctx, demo(), client.Options{Agent: "ann"})
	if err != nil {
		log.Fatal(err)
	}
	official, err := c.A2A(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer official.Destroy()
	answer, err := official.SendMessage(ctx, &a2a.SendMessageRequest{
		Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(`{ entity(iri: "finding:1") { label } }`)),
	})
	if err != nil {
		log.Fatal(err)
	}
	task := answer.(*a2a.Task)
	fmt.Println(task.Status.State, len(task.Artifacts))
	// Output: TASK_STATE_COMPLETED 1
}
