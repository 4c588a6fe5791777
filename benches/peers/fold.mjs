// Times LangGraph.js' messagesStateReducer from text to text: `node fold.mjs DIRECTORY`, with FOLD_RUNS as in fold.py.
// Run it where node_modules is; fold.sh takes care of that.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { messagesStateReducer } from "@langchain/langgraph";

const manifest = JSON.parse(
  readFileSync(new URL("package.json", import.meta.url), "utf8"),
);

function fold(request) {
  const { existing, updates } = JSON.parse(request);
  let state = existing;
  for (const update of updates) state = messagesStateReducer(state, update);
  return JSON.stringify(state);
}

// How many messages the thread must hold after the fold: those it had, and the new ids.
function expected(request) {
  const { existing, updates } = JSON.parse(request);
  return new Set([...existing, ...updates.flat()].map((message) => message.id)).size;
}

const directory = process.argv[2];
const runs = Number(process.env.FOLD_RUNS ?? 5);
for (const name of ["append", "writes"]) {
  // From bytes, as the others: a host receives UTF-8, and a JavaScript string is not that.
  const bytes = readFileSync(join(directory, `${name}.json`));
  const held = JSON.parse(fold(bytes.toString())).length;
  if (held !== expected(bytes.toString())) {
    throw new Error(`${name}: the thread holds ${held} messages`);
  }
  const times = [];
  for (let run = 0; run < runs; run++) {
    const begin = performance.now();
    Buffer.from(fold(bytes.toString()));
    times.push((performance.now() - begin) * 1000);
  }
  times.sort((a, b) => a - b);
  console.log(
    JSON.stringify({
      peer: "langgraph.js",
      version: manifest.dependencies["@langchain/langgraph"],
      case: name,
      us_per_run: Math.round(times[runs >> 1] * 10) / 10,
      samples: runs,
    }),
  );
}
