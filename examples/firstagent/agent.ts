const url = (process.env.KOINE_URL ?? "http://127.0.0.1:8080") + "/a2a";
const headers: Record<string, string> = { "Content-Type": "application/json", "X-Agent-ID": "scout" };
if (process.env.KOINE_KEY) headers.Authorization = `Bearer ${process.env.KOINE_KEY}`;

type Answer<T> = { result: T } | { error: { code: number; message: string; data: unknown } };

function call(method: string, params: object): Promise<Response> {
  return fetch(url, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) });
}

function result<T>(answer: Answer<T>): T {
  if ("error" in answer) throw new Error(JSON.stringify(answer.error));
  return answer.result;
}

// 1. Read the findings, and the agents behind them.
type Contradiction = { subject: { label: string }; object: { label: string }; assertedBy: string[]; certainty: number };
type Read = { data: { statements: { nodes: Contradiction[] } }; queryMetadata: { position: string } };
const query = `{
  statements(where: {predicate: {eq: "lab:contradicts"}}) {
    nodes { subject { label } object { ... on Entity { label } } assertedBy certainty }
  }
}`;
const read = result((await (await call("knowledge/query", { query })).json()) as Answer<Read>);
for (const s of read.data.statements.nodes) {
  console.log(`${s.subject.label}, against: ${s.object.label} (${s.assertedBy.join(", ")}, ${s.certainty})`);
}

// 2. Assert a statement of its own: how surely, and why. The key makes it safe to send again.
const update = await call("knowledge/update", {
  justification: "Both findings rest on run 7",
  mutations: [{
    op: "add",
    statement: {
      subject: { id: "finding:1" }, predicate: { id: "lab:status" }, object: { value: "doubtful" }, certainty: 0.4,
    },
  }],
  metadata: { koine: { idempotencyKey: "scout-doubts-finding-1" } },
});
console.log(result((await update.json()) as Answer<{ verificationStatus: string }>).verificationStatus);

// 3. Follow the graph from the position of the read: nothing in between is missed.
type Change = { op: string; statement: { object: { value: unknown } }; changeMetadata: { actor: string; position: string } };
const stream = await call("knowledge/subscribe", {
  subscriptionQuery: `subscription { statementChanged(where: {predicate: {eq: "lab:status"}}) { __typename } }`,
  metadata: { koine: { resume: read.queryMetadata.position } },
});
if (!stream.ok || !stream.body) throw new Error(await stream.text());
let buffer = "";
reading: for await (const chunk of stream.body.pipeThrough(new TextDecoderStream())) {
  const lines = (buffer += chunk).split("\n");
  buffer = lines.pop() ?? "";
  for (const line of lines) {
    if (!line.startsWith("data: ")) continue;
    const event = result(JSON.parse(line.slice("data: ".length)) as Answer<Change>);
    console.log(event.op, event.statement.object.value, "by", event.changeMetadata.actor);
    break reading; // an agent that goes on keeps event.changeMetadata.position
  }
}

export {};
