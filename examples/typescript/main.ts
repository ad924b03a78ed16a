// Typed operations of koine's GraphQL, without a client library:
//
//	koine serve --demo                      # in another terminal
//	cd examples/typescript && npm ci
//	npm run generate && npm run build && npm start
//
// KOINE_URL is the server, if it is another one, and KOINE_KEY a key.
import { print } from "graphql";
import type { TypedDocumentNode } from "@graphql-typed-document-node/core";

import { AssertDocument, MaterialsDocument, PatternDocument, SourcesDocument } from "./generated/koine.js";
import type { EntityFilter, FollowSubscription, FollowSubscriptionVariables } from "./generated/koine.js";

const url = (process.env.KOINE_URL ?? "http://127.0.0.1:8080") + "/graphql";
const headers: Record<string, string> = { "Content-Type": "application/json", "X-Agent-ID": "typist" };
if (process.env.KOINE_KEY) headers.Authorization = `Bearer ${process.env.KOINE_KEY}`;

type Answer<Data> = { data?: Data; errors?: { message: string; extensions?: { code?: string; hint?: string } }[] };

async function execute<Data, Variables>(document: TypedDocumentNode<Data, Variables>, variables: Variables): Promise<Data> {
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify({ query: print(document), variables }) });
  const answer = (await response.json()) as Answer<Data>;
  if (answer.errors || !answer.data) throw new Error(JSON.stringify(answer.errors));
  return answer.data;
}

// 1. A filter is typed, and so is what is selected. A value is `unknown` until it is tested.
const where: EntityFilter = { or: [{ type: { eq: "lab:Finding" } }, { property: [{ predicate: "lab:capacity", gte: 50 }] }] };
let after: string | null = null;
do {
  const page: Awaited<ReturnType<typeof materials>> = await materials(after);
  for (const m of page.nodes) {
    const capacity: number = typeof m.capacity === "number" ? m.capacity : NaN;
    console.log(`${m.label ?? m.iri}: ${capacity}`);
  }
  after = page.pageInfo.hasNextPage ? (page.pageInfo.endCursor ?? null) : null;
} while (after);

async function materials(after: string | null) {
  const { entities } = await execute(MaterialsDocument, { where, capacity: "lab:capacity", first: 1, after });
  if (!entities) throw new Error("no entities");
  return entities;
}

// 2. Sources, times and revisions.
const sources = await execute(SourcesDocument, { predicate: "lab:contradicts", since: 0 });
for (const s of sources.statements?.nodes ?? []) {
  const recorded: string = s.recordedAt;
  const revision: number = s.revision;
  const object = "label" in s.object ? s.object.label : "value" in s.object ? String(s.object.value) : "";
  console.log(`${object}: ${s.assertedBy.join(", ")}, ${s.certainty ?? 1}, ${!isNaN(Date.parse(recorded))}, ${revision > 0}`);
}
const [statements, head, position]: [number, number, string] = [sources.stats!.statements, sources.stats!.revision, sources.stats!.position];
console.log(typeof statements, typeof head, typeof position, typeof sources.changes?.pageInfo.endCursor);

// 3. A pattern.
const { match, entity } = await execute(PatternDocument, { s: "?finding", p: "lab:supportedBy", o: "lab:run-7", path: "lab:contradicts|^lab:contradicts" });
console.log(match?.columns?.join(), match?.nodes.length, entity?.follow.nodes.map((e) => e.label).join());

// 4. A mutation: the enum is a union of its words.
const { applyPatches } = await execute(AssertDocument, {
  input: {
    patches: [{ op: "add", statement: { subject: { id: "finding:1" }, predicate: { id: "lab:status" }, object: { value: "doubtful" }, certainty: 0.4 } }],
    expectedRevision: String(head),
  },
});
console.log(applyPatches?.success, Number(applyPatches?.statementsAffected));

// 5. An event of a subscription, as a client of graphql-sse or graphql-ws gives it.
export function describe(event: FollowSubscription, _: FollowSubscriptionVariables = { resume: position }): string {
  const change = event.statementChanged;
  if (!change) return "";
  return "op" in change ? `${change.op} ${change.statement.subject.iri} ${change.commit?.time ?? ""}` : String(change.position);
}
