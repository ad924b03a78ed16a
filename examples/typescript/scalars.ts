// The scalars of koine's schema in TypeScript, for the option `scalars` of graphql-codegen.
// With `strictScalars: true` a scalar that is missing here is an error.
export const scalars = {
  // Names and identifiers, as texts.
  IRI: "string",
  Path: "string",
  PatternTerm: "string",
  PatternPath: "string",
  Cursor: "string",
  Position: "string",
  DateTime: "string", // RFC 3339, in UTC

  // Whole numbers of up to 64 bits. Answers have JSON numbers, which are exact up to
  // Number.MAX_SAFE_INTEGER; in arguments larger ones are texts of digits.
  Long: { input: "number | string", output: "number" },
  Revision: { input: "number | string", output: "number" },

  // A revision or a time.
  Moment: "number | string",

  // The numbers of an embedding.
  Vector: "number[]",

  // The value of a literal is a text, a number or a boolean; an argument may be any JSON.
  JSON: "unknown",
} as const;
