// AI SDK, LangChain JS, Hugging Face, Cohere and Voyage for Node.
import { InferenceClient } from "@huggingface/inference";
import { OpenAIEmbeddings } from "@langchain/openai";
import { createCohere } from "@ai-sdk/cohere";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embed, embedMany, rerank } from "ai";
import { CohereClient, CohereClientV2 } from "cohere-ai";
import { VoyageAIClient } from "voyageai";
import { BUSY_URL, CLASSIFY_URL, DIM, EMBED_URL, EMBEDDER, QUERY, RERANKER, TEXTS, URL_ALL } from "./checks.mjs";
import { assert, check, equal, raises, ranked, same, vectors } from "./checks.mjs";

const noRetry = { maxRetries: 0 };
const compatible = createOpenAICompatible({ name: "here", baseURL: URL_ALL + "/v1" });
await check("E1 E4 E6 E7", "ai with openai-compatible: embed and embedMany", async () => {
  const model = compatible.textEmbeddingModel(EMBEDDER);
  const one = await embed({ model, value: TEXTS[0] });
  same(one.embedding, (await vectors(TEXTS))[0]);
  const many = await embedMany({ model, values: TEXTS });
  same(many.embeddings, await vectors(TEXTS));
  assert(many.usage.tokens > 0, "no usage");
});
await check("H1", "ai with openai-compatible: overload is a retryable error with the server's message", async () => {
  const busy = createOpenAICompatible({ name: "here", baseURL: BUSY_URL + "/v1" }).textEmbeddingModel("m");
  const error = await raises(() => embed({ model: busy, value: "x", ...noRetry }));
  equal([error.statusCode, error.isRetryable], [429, true]);
  assert(error.message.length > 10, error.message);
});
const cohereSdk = createCohere({ baseURL: URL_ALL + "/v2", apiKey: "none" });
await check("C1 C2", "ai with cohere: embed and embedMany, which need the billed tokens", async () => {
  const model = cohereSdk.textEmbeddingModel(EMBEDDER);
  same((await embedMany({ model, values: TEXTS })).embeddings, await vectors(TEXTS));
  assert((await embed({ model, value: TEXTS[0] })).usage.tokens > 0, "no usage");
});
await check("R1 R2 R3", "ai with cohere: rerank, with topN and without", async () => {
  const model = cohereSdk.reranking(RERANKER);
  const all = await rerank({ model, query: QUERY, documents: TEXTS });
  await ranked(all.ranking, (item) => item.score);
  equal(all.ranking.length, 3);
  equal((await rerank({ model, query: QUERY, documents: TEXTS, topN: 2 })).ranking.length, 2);
});
await check("C2 H1", "ai with cohere: an error carries the server's message", async () => {
  const error = await raises(() => embed({ model: cohereSdk.textEmbeddingModel("nobody/knows"), value: "x", ...noRetry }));
  assert(error.message.includes(EMBEDDER), error.message);
});
const langchain = { model: EMBEDDER, apiKey: "none", configuration: { baseURL: URL_ALL + "/v1" }, maxRetries: 0 };
await check("E1 E4 E6", "@langchain/openai: documents as a list, a query as a bare string", async () => {
  const embeddings = new OpenAIEmbeddings(langchain);
  same(await embeddings.embedDocuments(TEXTS), await vectors(TEXTS));
  same(await embeddings.embedQuery(TEXTS[0]), (await vectors(TEXTS))[0]);
});
await check("E4 E5", "@langchain/openai: encodingFormat float, dimensions", async () => {
  const embeddings = new OpenAIEmbeddings({ ...langchain, encodingFormat: "float", dimensions: 8 });
  same(await embeddings.embedDocuments(TEXTS), await vectors(TEXTS, { dimensions: 8 }));
});
for (const url of [EMBED_URL, EMBED_URL + "/embed", URL_ALL]) {
  await check(url.endsWith("/embed") ? "T1" : "T2", `@huggingface/inference: featureExtraction at ${url === URL_ALL ? "the origin of all models" : url.slice(EMBED_URL.length) || "the origin"}`, async () => {
    const endpoint = new InferenceClient().endpoint(url);
    same(await endpoint.featureExtraction({ inputs: TEXTS }), await vectors(TEXTS));
    equal((await endpoint.featureExtraction({ inputs: TEXTS[0] })).flat().length, DIM);
  });
}
await check("T5 T2", "@huggingface/inference: textClassification of one text", async () => {
  const found = await new InferenceClient().endpoint(CLASSIFY_URL).textClassification({ inputs: TEXTS[0] });
  equal(found.map((item) => item.label).sort(), ["anger", "calm", "joy"]);
});
await check("T7", "@huggingface/inference: sentenceSimilarity", async () => {
  const inputs = { source_sentence: TEXTS[0], sentences: TEXTS };
  same((await new InferenceClient().endpoint(EMBED_URL).sentenceSimilarity({ inputs }))[0], 1);
});
await check("C1 C2 C4", "cohere-ai v2: embed in several types, rerank", async () => {
  const client = new CohereClientV2({ token: "none", environment: URL_ALL });
  const types = ["float", "int8", "ubinary"];
  const answer = await client.embed({ texts: TEXTS, model: EMBEDDER, inputType: "search_document", embeddingTypes: types });
  same(answer.embeddings.float, await vectors(TEXTS));
  equal([answer.embeddings.int8[0].length, answer.embeddings.ubinary[0].length], [DIM, DIM / 8]);
  const found = await client.rerank({ query: QUERY, documents: TEXTS, model: RERANKER });
  await ranked(found.results, (item) => item.relevanceScore);
});
await check("C3 R4", "cohere-ai v1: embed, rerank with documents", async () => {
  const client = new CohereClient({ token: "none", environment: URL_ALL });
  same((await client.embed({ texts: TEXTS })).embeddings, await vectors(TEXTS));
  const found = await client.rerank({ query: QUERY, documents: TEXTS, model: RERANKER, returnDocuments: true });
  equal(found.results.map((item) => item.document.text), found.results.map((item) => TEXTS[item.index]));
});
await check("E14 R8", "voyageai: embed, rerank with topK", async () => {
  const client = new VoyageAIClient({ apiKey: "none", environment: URL_ALL + "/v1" });
  const answer = await client.embed({ input: TEXTS, model: EMBEDDER });
  same(answer.data.map((item) => item.embedding), await vectors(TEXTS));
  const found = await client.rerank({ query: QUERY, documents: TEXTS, model: RERANKER, topK: 2 });
  equal(found.data.length, 2);
  await ranked(found.data, (item) => item.relevanceScore);
});
