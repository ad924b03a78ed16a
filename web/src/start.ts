import { Kind, type OperationDefinitionNode } from 'graphql';

/** The arguments that say where a subscription begins. */
const starts = ['resume', 'sinceSequence'];

/** Those that begin otherwise when nothing is said: with the task as it stands; and with what is told once only. */
const others = ['taskChanged', 'signalSent'];

/** Whether a subscription begins with what comes from now on. */
export function beginsNow(operation: OperationDefinitionNode, headers: Record<string, string>): boolean {
  const [field] = operation.selectionSet.selections;
  if (field?.kind !== Kind.FIELD || others.includes(field.name.value)) return false;
  if (Object.keys(headers).some((name) => name.toLowerCase() === 'last-event-id')) return false;
  const said = field.arguments?.filter((argument) => starts.includes(argument.name.value)) ?? [];
  return said.every(({ value }) => value.kind === Kind.NULL || (value.kind === Kind.STRING && value.value === 'latest'));
}
