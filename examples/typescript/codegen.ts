import type { CodegenConfig } from "@graphql-codegen/cli";

import { scalars } from "./scalars";

const server = process.env.KOINE_URL ?? "http://127.0.0.1:8080";

const config: CodegenConfig = {
  schema: `${server}/graphql/schema.graphql`,
  documents: "operations.graphql",
  generates: {
    "generated/koine.ts": {
      plugins: ["typescript-operations", "typed-document-node"],
      config: { scalars, strictScalars: true, useTypeImports: true, enumsAsTypes: true },
    },
  },
};

export default config;
