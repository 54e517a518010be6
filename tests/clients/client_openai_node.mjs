// `openai` for Node, the major that decodes base64 without looking and the newest one.
import { BUSY_URL, EMBEDDER, KEY, KEYED_URL, TEXTS, URL_ALL } from "./checks.mjs";
import { assert, check, equal, raises, same, vectors } from "./checks.mjs";

for (const name of ["openai6", "openai"]) {
  const sdk = await import(name);
  const client = (baseURL = URL_ALL + "/v1", apiKey = "none") => new sdk.OpenAI({ baseURL, apiKey, maxRetries: 0 });
  const create = (options, base) => client(base).embeddings.create({ model: EMBEDDER, input: TEXTS, ...options });

  for (const base of [URL_ALL, URL_ALL + "/v1"]) {
    await check("E1 E4 E6 E7", `${name}: create() without format equals float, at ${base.slice(URL_ALL.length) || "the root"}`, async () => {
      const [decoded, plain] = [await create({}, base), await create({ encoding_format: "float" }, base)];
      same(decoded.data.map((item) => item.embedding), await vectors(TEXTS));
      same(plain.data.map((item) => item.embedding), await vectors(TEXTS));
      equal([decoded.object, decoded.model, decoded.data[2].index], ["list", EMBEDDER, 2]);
      assert(decoded.usage.total_tokens > 0, "no usage");
    });
  }
  await check("E4", `${name}: explicit base64 is handed through`, async () => {
    const text = (await create({ encoding_format: "base64" })).data[0].embedding;
    equal(typeof text, "string");
    same([...new Float32Array(Uint8Array.from(Buffer.from(text, "base64")).buffer)], (await vectors(TEXTS))[0]);
  });
  await check("E2 E3", `${name}: token ids and an empty string`, async () => {
    const answer = await create({ input: [[15339, 1917], [15339]] });
    same(answer.data.map((item) => item.embedding), await vectors(["hello world", "hello"]));
    same((await create({ input: "" })).data[0].embedding, (await vectors([""]))[0]);
  });
  await check("E5", `${name}: dimensions`, async () => {
    same((await create({ dimensions: 8 })).data[0].embedding, (await vectors(TEXTS, { dimensions: 8 }))[0]);
  });
  await check("I1", `${name}: models list and retrieve, with a slash in the name`, async () => {
    const names = [];
    for await (const model of client().models.list()) names.push(model.id);
    assert(names.includes(EMBEDDER), `${names}`);
    equal((await client().models.retrieve(EMBEDDER)).id, EMBEDDER);
  });
  await check("H1 H2", `${name}: overload is a RateLimitError, a wrong body a 4xx with message and request id`, async () => {
    const busy = await raises(() => create({}, BUSY_URL + "/v1"));
    assert(busy instanceof sdk.RateLimitError, `${busy}`);
    const wrong = await raises(() => create({ input: { a: 1 } }));
    assert(wrong.status >= 400 && wrong.status < 500 && wrong.error.message && wrong.requestID, `${wrong}`);
  });
  await check("E1", `${name}: with a key configured`, async () => {
    await client(KEYED_URL + "/v1", KEY).embeddings.create({ model: EMBEDDER, input: "x" });
    const wrong = await raises(() => client(KEYED_URL + "/v1", "no").embeddings.create({ model: EMBEDDER, input: "x" }));
    assert(wrong instanceof sdk.AuthenticationError, `${wrong}`);
  });
}
