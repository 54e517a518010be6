// What a Node script uses to say what it checked: the twin of checks.py.

const env = (name) => process.env[`CLIENTS_${name}`] ?? "";
export const URL_ALL = env("URL");
export const EMBED_URL = env("EMBED_URL");
export const RERANK_URL = env("RERANK_URL");
export const CLASSIFY_URL = env("CLASSIFY_URL");
export const KEYED_URL = env("KEYED_URL");
export const BUSY_URL = env("BUSY_URL");
export const KEY = env("KEY");
export const EMBEDDER = "tiny/embedder";
export const RERANKER = "tiny/reranker";
export const CLASSIFIER = "tiny/classifier";
export const DIM = 32;
export const TEXTS = ["the cat sat on the mat", "paris is a city", "a dog"];
export const QUERY = "a city in france";

/** Run a check and report it as one line of JSON. */
export async function check(rows, what, body) {
  let why = "";
  try {
    await body();
  } catch (error) {
    why = `${error?.name ?? "error"}: ${error?.message ?? error}`.slice(0, 600);
  }
  console.log("CHECK " + JSON.stringify({ rows: rows.split(" "), what, why, contradiction: "" }));
}

async function post(path, body) {
  const answer = await fetch(URL_ALL + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
  return answer.json();
}

/** The vectors of the embedder, as plain numbers. */
export async function vectors(texts, options = {}) {
  const answer = await post("/v1/embeddings", { model: EMBEDDER, input: texts, encoding_format: "float", ...options });
  return answer.data.map((item) => item.embedding);
}

/** Results are sorted, and each score belongs to the document of its index. */
export async function ranked(results, score) {
  const answer = await post("/rerank", { model: RERANKER, query: QUERY, documents: TEXTS });
  const expected = Object.fromEntries(answer.results.map((item) => [item.index, item.relevance_score]));
  same(results.map(score), results.map((item) => expected[item.index ?? item.originalIndex]));
  const got = results.map(score);
  assert(got.every((value, at) => at === 0 || got[at - 1] >= value), `not sorted: ${got}`);
}

export function assert(condition, message) {
  if (!condition) throw new Error(message);
}

export function equal(got, expected) {
  assert(JSON.stringify(got) === JSON.stringify(expected), `${JSON.stringify(got)} instead of ${JSON.stringify(expected)}`);
}

/** Numbers are the expected ones, within what packing a batch differently may change. */
export function same(got, expected, tolerance = 1e-5) {
  const [a, b] = [[got].flat(9), [expected].flat(9)];
  assert(a.length === b.length, `${a.length} numbers instead of ${b.length}`);
  const worst = Math.max(...a.map((value, at) => Math.abs(value - b[at])));
  assert(worst <= tolerance, `numbers differ by ${worst}`);
}

/** The error that the call must raise. */
export async function raises(call) {
  let value;
  try {
    value = await call();
  } catch (error) {
    return error;
  }
  throw new Error(`no error; the call returned ${JSON.stringify(value)?.slice(0, 200)}`);
}
