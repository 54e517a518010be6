"use strict";

const root = document.body.dataset.root;
const byId = (id) => document.getElementById(id);
async function call(method, path, body) {
  const headers = { accept: "application/json" };
  if (byId("key").value) headers.authorization = `Bearer ${byId("key").value}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  const response = await fetch(root + path, { method, headers, body });
  const text = await response.text();
  let value = text;
  try { value = JSON.parse(text); } catch { /* some answers are plain text */ }
  return { ok: response.ok, status: response.status, value };
}

async function ask(path, body) {
  const model = byId("model").value;
  const answer = await call("POST", path, JSON.stringify(model ? { model, ...body } : body));
  if (answer.ok) return answer.value;
  throw new Error(answer.value.message ?? answer.value.error ?? `status ${answer.status}`);
}

function onSubmit(form, work) {
  const output = form.querySelector("output");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    output.classList.remove("bad");
    output.textContent = "…";
    try {
      output.replaceChildren(await work(form.elements));
    } catch (error) {
      output.classList.add("bad");
      output.textContent = error.message;
    }
  });
}

function cosine(left, right) {
  const dot = (a, b) => a.reduce((sum, value, index) => sum + value * b[index], 0);
  return dot(left, right) / Math.sqrt(dot(left, left) * dot(right, right));
}

onSubmit(byId("compare"), async ({ left, right }) => {
  const answer = await ask("/v1/embeddings", { input: [left.value, right.value] });
  const [one, other] = answer.data.map((item) => item.embedding);
  return `cosine ${cosine(one, other).toFixed(4)} · ${one.length} numbers · ${answer.usage.total_tokens} tokens`;
});

onSubmit(byId("rank"), async ({ query, documents }) => {
  const lines = documents.value.split("\n").filter((line) => line.trim());
  const answer = await ask("/rerank", { query: query.value, documents: lines });
  const list = document.createElement("ol");
  for (const { index, relevance_score: score } of answer.results) {
    const item = document.createElement("li");
    item.textContent = `${score.toFixed(4)}  ${lines[index]}`;
    list.append(item);
  }
  return list;
});

function typeOf(schema) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.filter((kind) => kind.type !== "null").map(typeOf).join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items ?? {})}`;
  return schema.type ?? "any";
}

function describe(route, name, schema, required) {
  const row = route.querySelector("tbody").insertRow();
  const code = document.createElement("code");
  code.textContent = name + (required ? " *" : "");
  row.insertCell().append(code);
  row.insertCell().textContent = typeOf(schema);
  row.insertCell().textContent = schema.description ?? "";
}

function addRoute(section, path, method, operation, schemas) {
  const route = byId("route").content.cloneNode(true).firstElementChild;
  route.querySelector(".method").textContent = method.toUpperCase();
  route.querySelector(".path").textContent = path;
  route.querySelector(".summary").textContent = operation.summary;
  route.querySelector(".description").textContent = operation.description;
  route.dataset.words = `${path} ${operation.summary} ${operation.tags}`.toLowerCase();
  const form = route.querySelector(".try");
  form.elements.path.value = path;
  const body = operation.requestBody?.content["application/json"];
  if (body) {
    const name = typeOf(body.schema);
    const { properties, required = [] } = schemas[name];
    for (const [field, schema] of Object.entries(properties)) describe(route, field, schema, required.includes(field));
    form.elements.body.value = JSON.stringify(body.example, null, 2);
  } else {
    route.querySelector("table").remove();
    form.querySelector(".body").remove();
  }
  if (!path.includes("{")) form.querySelector(".address").remove();
  const answer = form.querySelector(".answer");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    answer.hidden = false;
    answer.textContent = "…";
    const target = form.elements.path?.value ?? path;
    try {
      const { status, value } = await call(method.toUpperCase(), target, form.elements.body?.value);
      const text = typeof value === "string" ? value : JSON.stringify(value, null, 1);
      answer.textContent = `${status}\n${text.slice(0, 20000)}`;
    } catch (error) {
      answer.textContent = error.message;
    }
  });
  section.append(route);
}

async function showRoutes() {
  const { value: openapi } = await call("GET", "/openapi.json");
  const sections = new Map();
  for (const [path, methods] of Object.entries(openapi.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const [tag] = operation.tags;
      if (!sections.has(tag)) {
        const heading = document.createElement("h3");
        heading.className = "tag";
        heading.textContent = tag;
        const section = document.createElement("section");
        section.append(heading);
        sections.set(tag, section);
      }
      addRoute(sections.get(tag), path, method, operation, openapi.components.schemas);
    }
  }
  byId("list").replaceChildren(...sections.values());
}

async function showState() {
  const state = byId("state");
  const health = await call("GET", "/health");
  state.classList.toggle("bad", !health.ok);
  state.textContent = health.ok ? "ready" : `not ready: ${health.value.status}`;
  if (!health.ok) setTimeout(showState, 1000);
  else await showModels();
}

async function showModels() {
  const models = await call("GET", "/v1/models");
  if (!models.ok) return;
  const options = models.value.data.map(({ id, capabilities }) => new Option(`${id} (${capabilities.join(", ")})`, id));
  byId("model").replaceChildren(new Option("first fitting one", ""), ...options);
}

byId("find").addEventListener("input", ({ target }) => {
  const word = target.value.toLowerCase();
  for (const route of document.querySelectorAll(".route")) route.hidden = !route.dataset.words.includes(word);
  for (const section of document.querySelectorAll("#list > section")) {
    section.hidden = !section.querySelector(".route:not([hidden])");
  }
});
byId("key").addEventListener("change", showModels);
showRoutes();
showState();
