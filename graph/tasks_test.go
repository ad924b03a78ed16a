package graph_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"koine/graph/limit"
	"koine/internal/operation"
	"koine/kg"
)

// asks creates a task of ann's for bob, with more of an input.
func (c *conversing) asks(text, more string) (id, position string) {
	c.t.Helper()
	var data struct {
		SendMessage struct {
			Task     struct{ ID string }
			Position string
		}
	}
	answer := c.told("ann", `mutation { sendMessage(input: {to: "bob", parts: [{text: "%s"}] %s}) { task { id } position } }`, text, more)
	if err := json.Unmarshal([]byte(answer), &data); err != nil {
		c.t.Fatal(err)
	}
	return data.SendMessage.Task.ID, data.SendMessage.Position
}

// reports is bob's report on a task.
func (c *conversing) reports(id, more string) string {
	c.t.Helper()
	return c.told("bob", `mutation { reportTask(input: {taskId: "%s" %s}) { task { status { state } } } }`, id, more)
}

func TestTaskFields(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	parent, _ := c.asks("all of it", "")
	id, _ := c.asks("count", `, contextId: "c", parentId: "`+parent+`", userId: "u", metadata: {m: 1}, taskMetadata: {n: 1.5, gone: true}, messageId: "m1", extensions: ["urn:x"], referenceTaskIds: ["`+parent+`"]`)
	c.told("ann", `mutation { sendMessage(input: {taskId: "%s", parts: [{data: {x: 1.5}, mediaType: "application/json", metadata: {y: 2}}, {raw: "AAEC", filename: "f.bin"}, {url: "https://example.org/x"}]}) { replayed } }`, id)
	c.reports(id, `, state: WORKING, message: [{text: "one"}, {text: "two"}], metadata: {gone: null, o: 2}`)
	c.reports(id, `, artifacts: [{id: "a/1", name: "sum", description: "of all", parts: [{text: "4"}], metadata: {k: 1}, extensions: ["urn:y"]}, {id: "a/1", append: true, complete: true, parts: [{data: 2}]}, {id: "b", parts: [{text: "x"}]}]`)
	c.reports(id, `, state: FAILED, failure: {code: "NO", message: "no more", details: {at: 3}}`)
	c.want("the task", c.told("bob", `{ task(id: "%s") { id contextId creator: creatorId handler: handlerId status { state message { text } } messageCount metadata parentId parent { id subtasks { nodes { id } totalCount } } userId failure { code message details } version } }`, id),
		`{"task":{"id":"`+id+`","contextId":"c","creator":"agent://ann","handler":"agent://bob","status":{"state":"FAILED","message":null},"messageCount":3,"metadata":{"n":1.5,"o":2},"parentId":"`+parent+
			`","parent":{"id":"`+parent+`","subtasks":{"nodes":[{"id":"`+id+`"}],"totalCount":1}},"userId":"u","failure":{"code":"NO","message":"no more","details":{"at":3}},"version":5}}`)
	c.want("what was said", c.told("ann", `{ task(id: "%s") { messages { nodes { messageId role author: authorId text metadata extensions referenceTaskIds parts { kind text raw url data mediaType filename metadata } } pageInfo { hasNextPage } } } }`, id)[len(`{"task":{"messages":{"nodes":[`):],
		`{"messageId":"m1","role":"USER","author":"agent://ann","text":"count","metadata":{"m":1},"extensions":["urn:x"],"referenceTaskIds":["`+parent+`"],"parts":[{"kind":"TEXT","text":"count","raw":null,"url":null,"data":null,"mediaType":null,"filename":null,"metadata":null}]},`+
			said2(t, c, id)+`],"pageInfo":{"hasNextPage":false}}}}`)
	c.want("artifacts", c.told("ann", `{ task(id: "%s") { artifacts { id artifactId taskId name description text complete metadata extensions parts { text data } entity { types } } } }`, id),
		`{"task":{"artifacts":[{"id":"urn:koine:artifact:`+id+`/a%2F1","artifactId":"a/1","taskId":"`+id+`","name":"sum","description":"of all","text":"4","complete":true,"metadata":{"k":1},"extensions":["urn:y"],"parts":[{"text":"4","data":null},{"text":null,"data":2}],"entity":{"types":["urn:koine:vocab:Artifact"]}},`+
			`{"id":"urn:koine:artifact:`+id+`/b","artifactId":"b","taskId":"`+id+`","name":null,"description":null,"text":"x","complete":false,"metadata":null,"extensions":[],"parts":[{"text":"x","data":null}],"entity":{"types":["urn:koine:vocab:Artifact"]}}]}}`)
	c.want("as an entity", c.told("bob", `{ entity(iri: "urn:koine:task:%s", view: {allGraphs: true}) { asTask { id entity { asTask { userId } asMessage { id } } } asChannel { id } } }`, id),
		`{"entity":{"asTask":{"id":"`+id+`","entity":{"asTask":{"userId":"u"},"asMessage":null}},"asChannel":null}}`)
	channel := c.lab("PUBLIC")
	message := c.say("bob", channel, "done", fmt.Sprintf(`, artifactRefs: ["%s/a/1", "elsewhere", "urn:koine:artifact:%s/a%%2F1", "%s/none", "%s/b", "%s/b"]`, id, id, id, id, nowhere))
	const refers = `{ message(id: "%s") { artifacts { artifactId text } } }`
	c.want("what a message refers to", c.told("ann", refers, message), `{"message":{"artifacts":[{"artifactId":"a/1","text":"4"},null,{"artifactId":"a/1","text":"4"},null,{"artifactId":"b","text":"x"},null]}}`)
	c.want("for others", c.told("eve", refers, message), `{"message":{"artifacts":[null,null,null,null,null,null]}}`)
}

// said2 lists the messages of the creator second and of the handler first, as far as they
// are known.
func said2(t *testing.T, c *conversing, id string) string {
	t.Helper()
	var data struct {
		Task struct {
			Messages struct{ Nodes []struct{ MessageID string } }
		}
	}
	if err := json.Unmarshal([]byte(c.told("ann", `{ task(id: "%s") { messages { nodes { messageId } } } }`, id)), &data); err != nil || len(data.Task.Messages.Nodes) != 3 || data.Task.Messages.Nodes[1].MessageID == "" {
		t.Fatal(err, data)
	}
	none := `"mediaType":null,"filename":null,"metadata":null}`
	return `{"messageId":"` + data.Task.Messages.Nodes[1].MessageID + `","role":"USER","author":"agent://ann","text":"","metadata":null,"extensions":[],"referenceTaskIds":[],"parts":[{"kind":"DATA","text":null,"raw":null,"url":null,"data":{"x":1.5},"mediaType":"application/json","filename":null,"metadata":{"y":2}},` +
		`{"kind":"RAW","text":null,"raw":"AAEC","url":null,"data":null,"mediaType":null,"filename":"f.bin","metadata":null},{"kind":"URL","text":null,"raw":null,"url":"https://example.org/x","data":null,` + none + `]},` +
		`{"messageId":"` + data.Task.Messages.Nodes[2].MessageID + `","role":"AGENT","author":"agent://bob","text":"one\ntwo","metadata":null,"extensions":[],"referenceTaskIds":[],"parts":[{"kind":"TEXT","text":"one","raw":null,"url":null,"data":null,` + none + `,{"kind":"TEXT","text":"two","raw":null,"url":null,"data":null,` + none + `]}`
}

func TestTaskLists(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	var ids []string
	for n := range 5 {
		id, _ := c.asks(fmt.Sprint("task ", n), fmt.Sprintf(`, contextId: "c%d"`, n%2))
		ids = append(ids, id)
	}
	back := c.id("bob", `mutation { sendMessage(input: {to: "ann", parts: [{text: "and you"}]}) { message: task { id } } }`)
	c.reports(ids[1], ", state: COMPLETED")
	list := func(who, args string) (out []string) {
		t.Helper()
		for after := ""; ; {
			var data struct {
				Tasks struct {
					Nodes    []struct{ ID string }
					PageInfo struct {
						HasNextPage bool
						EndCursor   string
					}
				}
			}
			if err := json.Unmarshal([]byte(c.told(who, `{ tasks(first: 2 %s %s) { nodes { id } pageInfo { hasNextPage endCursor } } }`, args, after)), &data); err != nil {
				t.Fatal(err)
			}
			for _, n := range data.Tasks.Nodes {
				out = append(out, n.ID)
			}
			if !data.Tasks.PageInfo.HasNextPage {
				return out
			}
			after = `, after: "` + data.Tasks.PageInfo.EndCursor + `"`
		}
	}
	for _, row := range []struct {
		who, args string
		want      []string
	}{
		{"ann", "", []string{ids[1], back, ids[4], ids[3], ids[2], ids[0]}},
		{"ann", ", createdByMe: true", []string{ids[1], ids[4], ids[3], ids[2], ids[0]}},
		{"ann", ", handledByMe: true", []string{back}},
		{"bob", ", createdByMe: true", []string{back}},
		{"ann", `, contextId: "c1"`, []string{ids[1], ids[3]}},
		{"ann", `, handlerId: "ann"`, []string{back}},
		{"bob", `, states: [COMPLETED, FAILED]`, []string{ids[1]}},
		{"bob", `, since: "2100-01-01T00:00:00Z"`, nil},
		{"bob", `, parentId: "x"`, nil},
		{"eve", "", nil},
	} {
		if got := list(row.who, row.args); !slices.Equal(got, row.want) {
			t.Errorf("%s%s: got %v, want %v", row.who, row.args, got, row.want)
		}
	}
	c.want("no page", c.refused("ann", `{ tasks(first: 0) { totalCount } }`), "INVALID first")
	c.want("a foreign cursor", c.refused("ann", `{ tasks(after: "x") { totalCount } }`), "CURSOR_FOREIGN after")
	c.want("too long a page", c.refused("ann", `{ tasks(first: 101) { totalCount } }`), "LIMIT_EXCEEDED")
	c.told("ann", `mutation { sendMessage(input: {taskId: "%s", parts: [{text: "more"}]}) { replayed } }`, ids[0])
	const page = `{ task(id: "%s") { messages(%s) { nodes { text } pageInfo { hasPreviousPage hasNextPage } totalCount } } }`
	c.want("the first message", c.told("ann", page, ids[0], "first: 1"), `{"task":{"messages":{"nodes":[{"text":"task 0"}],"pageInfo":{"hasPreviousPage":false,"hasNextPage":true},"totalCount":2}}}`)
	c.want("the last", c.told("ann", page, ids[0], `last: 1`), `{"task":{"messages":{"nodes":[{"text":"more"}],"pageInfo":{"hasPreviousPage":true,"hasNextPage":false},"totalCount":2}}}`)
	c.want("behind nothing", c.refused("ann", page, ids[0], `after: "0"`), "CURSOR_FOREIGN after")
}

func TestTaskMutations(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id, _ := c.asks("count", `, messageId: "m"`)
	c.want("the same message", c.told("ann", `mutation { sendMessage(input: {to: "bob", parts: [{text: "count"}], messageId: "m"}) { task { id } replayed } }`), `{"sendMessage":{"task":{"id":"`+id+`"},"replayed":true}}`)
	for _, row := range []struct{ what, who, query, want string }{
		{"nobody", "ann", `mutation { sendMessage(input: {to: "", parts: [{text: "x"}]}) { replayed } }`, "AGENT_NOT_FOUND input.to"},
		{"nothing", "ann", `mutation { sendMessage(input: {to: "bob", parts: []}) { replayed } }`, "INVALID input.parts"},
		{"two in one", "ann", `mutation { sendMessage(input: {to: "bob", parts: [{text: "x", url: "y"}]}) { replayed } }`, "INVALID input.parts[0]"},
		{"another context", "ann", `mutation { sendMessage(input: {taskId: "` + id + `", contextId: "x", parts: [{text: "x"}]}) { replayed } }`, "INVALID input.contextId"},
		{"its handler sends", "bob", `mutation { sendMessage(input: {taskId: "` + id + `", parts: [{text: "x"}]}) { replayed } }`, "PERMISSION_DENIED input.taskId"},
		{"its creator reports", "ann", `mutation { reportTask(input: {taskId: "` + id + `", state: WORKING}) { task { id } } }`, "PERMISSION_DENIED input.taskId"},
		{"a reason without a failure", "bob", `mutation { reportTask(input: {taskId: "` + id + `", state: WORKING, failure: {code: "X", message: "x"}}) { task { id } } }`, "INVALID input.failure"},
		{"its handler deletes", "bob", `mutation { deleteTask(input: {taskId: "` + id + `"}) { taskId } }`, "PERMISSION_DENIED input.taskId"},
	} {
		c.want(row.what, c.refused(row.who, "%s", row.query), row.want)
	}
	result := c.ask("ann", `mutation { cancelTask(input: {taskId: "%s"}) { task { status { state } } } }`, id)
	c.want("canceled", string(result.Data), `{"cancelTask":{"task":{"status":{"state":"CANCELED"}}}}`)
	if result.Position.Revision != c.store.Head().Revision {
		t.Errorf("canceling answers at %v", result.Position)
	}
	c.want("again", c.refused("ann", `mutation { cancelTask(input: {taskId: "%s"}) { task { id } } }`, id), "TASK_ENDED input.taskId")
	c.want("a report behind the end", c.refused("bob", `mutation { reportTask(input: {taskId: "%s", state: WORKING}) { task { id } } }`, id), "TASK_ENDED input.taskId")
	c.want("a message behind the end", c.refused("ann", `mutation { sendMessage(input: {taskId: "%s", parts: [{text: "x"}]}) { replayed } }`, id), "TASK_ENDED input.taskId")
	c.want("deleted", c.told("ann", `mutation { deleteTask(input: {taskId: "%s"}) { taskId } }`, id), `{"deleteTask":{"taskId":"`+id+`"}}`)
	c.want("it is gone", c.refused("ann", `{ task(id: "%s") { id } }`, id), "TASK_NOT_FOUND id")
}

// TestUnseenTasksAreNone proves that an outsider gets the same answers about a task as
// about none.
func TestUnseenTasksAreNone(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id, _ := c.asks("count", "")
	c.reports(id, `, artifacts: [{id: "a", parts: [{text: "x"}]}]`)
	for _, query := range []string{
		`{ task(id: "%s") { id status { state } } }`,
		`{ tasks { totalCount nodes { id } } t: tasks(parentId: "%s") { totalCount } }`,
		`{ entity(iri: "urn:koine:task:%s", view: {allGraphs: true}) { asTask { id } types } }`,
		`{ entity(iri: "urn:koine:artifact:%s/a", view: {allGraphs: true}) { types } }`,
		`mutation { sendMessage(input: {taskId: "%s", parts: [{text: "x"}]}) { replayed } }`,
		`mutation { sendMessage(input: {taskId: "%s", to: "bob", parts: [{text: "x"}]}) { replayed } }`,
		`mutation { reportTask(input: {taskId: "%s", state: WORKING}) { task { id } } }`,
		`mutation { cancelTask(input: {taskId: "%s"}) { task { id } } }`,
		`mutation { deleteTask(input: {taskId: "%s"}) { taskId } }`,
	} {
		told := func(id string) string {
			result := c.ask("eve", query, id)
			errs, _ := json.Marshal(result.Errors)
			return strings.ReplaceAll(string(result.Data)+string(errs), id, "…")
		}
		c.want(query, told(id), told(nowhere))
	}
	c.want("followed", c.deaf("eve", fmt.Sprintf(changesOfTask, id, ""), operation.Resume{}), c.deaf("eve", fmt.Sprintf(changesOfTask, nowhere, ""), operation.Resume{}))
}

const changesOfTask = `subscription { e: taskChanged(id: "%s"%s) { ... on TaskChange { kind taskId task { status { state } } message { text } artifact { artifactId text } append status { state message { text } } failure { code } position } ... on Progress { revision } ... on Resync { reason } } }`

// TestTaskChanged proves that the first event is the task and the next ones are its
// changes, and that a stream resumes after any of them without a gap or a duplicate, until
// the task ends.
func TestTaskChanged(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id, position := c.asks("count", "")
	query := fmt.Sprintf(changesOfTask, id, "")
	live, latest := c.hear(t, "ann", query, operation.Resume{}), c.hear(t, "ann", query, operation.Resume{Start: operation.Latest})
	c.reports(id, `, state: INPUT_REQUIRED, message: [{text: "of what?"}], artifacts: [{id: "a", parts: [{text: "1"}]}, {id: "a", append: true, parts: [{text: "2"}]}]`)
	c.told("ann", `mutation { sendMessage(input: {taskId: "%s", parts: [{text: "sheep"}]}) { replayed } }`, id)
	c.reports(id, `, state: FAILED, failure: {code: "ASLEEP", message: "zzz"}`)
	type event struct {
		E struct {
			Kind, TaskID, Position string
			Message                *struct{ Text string }
			Artifact               *struct{ ArtifactID, Text string }
			Append                 *bool
			Status                 *struct {
				State   string
				Message *struct{ Text string }
			}
			Failure *struct{ Code string }
			Task    *struct{ Status struct{ State string } }
		}
	}
	read := func(f *tail, want ...string) (positions []kg.Position) {
		t.Helper()
		for _, w := range want {
			e, data := f.event()
			var got event
			if err := json.Unmarshal([]byte(data), &got); err != nil {
				t.Fatal(err)
			}
			g := got.E
			said := g.Kind
			switch {
			case g.Kind == "TASK":
				said += " " + g.Task.Status.State
			case g.Message != nil:
				said += " " + g.Message.Text
			case g.Artifact != nil:
				said += fmt.Sprint(" ", g.Artifact.ArtifactID, " ", g.Artifact.Text, " ", *g.Append)
			case g.Status != nil:
				said += " " + g.Status.State
				if g.Status.Message != nil {
					said += " " + g.Status.Message.Text
				}
				if g.Failure != nil {
					said += " " + g.Failure.Code
				}
			}
			if said != w || g.TaskID != id || g.Position != c.store.FormatPosition(e.Position) || g.Task == nil || e.Changes[0].Commit.TaskID != id {
				t.Fatalf("got %s, want %s", data, w)
			}
			positions = append(positions, e.Position)
		}
		return positions
	}
	ends := func(f *tail) {
		t.Helper()
		if e, err, ok := f.next(); ok {
			t.Errorf("behind the end there is %s, %v", e.Result.Data, err)
		}
	}
	want := []string{"TASK SUBMITTED", "ARTIFACT a 1 false", "ARTIFACT a 2 true", "STATUS INPUT_REQUIRED of what?", "MESSAGE sheep", "STATUS SUBMITTED", "STATUS FAILED ASLEEP"}
	positions := read(live, want...)
	ends(live)
	read(latest, want[1:]...)
	ends(latest)
	behind := c.hear(t, "bob", fmt.Sprintf(changesOfTask, id, `, resume: "`+position+`"`), operation.Resume{})
	read(behind, want[1:]...)
	ends(behind)
	whole := c.hear(t, "bob", query, operation.Resume{Start: operation.Earliest})
	read(whole, append([]string{"MESSAGE count", "STATUS SUBMITTED"}, want[1:]...)...)
	ends(whole)
	for i, at := range positions {
		f := c.hear(t, "bob", query, operation.Resume{Start: operation.After, After: at})
		read(f, want[i+1:]...)
		ends(f)
	}
	late := c.hear(t, "ann", query, operation.Resume{Start: operation.After, After: c.store.Head()})
	ends(late)
	last := c.hear(t, "ann", fmt.Sprintf(changesOfTask, id, `, resume: "snapshot"`), operation.Resume{})
	read(last, "TASK FAILED")
	ends(last)

	gone, _ := c.asks("and again", "")
	f := c.hear(t, "ann", fmt.Sprintf(changesOfTask, gone, ""), operation.Resume{})
	f.event()
	c.told("ann", `mutation { deleteTask(input: {taskId: "%s"}) { taskId } }`, gone)
	if _, err, ok := f.next(); !ok || kg.CodeOf(err) != kg.CodeTaskNotFound {
		t.Errorf("when the task is deleted the stream ends with %v", err)
	}
	c.want("of another log", c.deaf("bob", query, operation.Resume{Start: operation.After, After: kg.Position{Epoch: kg.Epoch{1}}}), string(kg.CodePositionGone))
	if err := c.store.Maintenance().CutLog(t.Context(), positions[4].Revision); err != nil {
		t.Fatal(err)
	}
	c.want("behind which the log is cut", c.deaf("bob", query, operation.Resume{Start: operation.After, After: positions[1]}), string(kg.CodePositionGone))
}
