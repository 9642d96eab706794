/** The interface as a page, made from the OpenAPI description that the server gives of itself. */

import { themeButton } from "/static/theme-button.js";

function element(tag, attributes = {}, ...children) {
  const made = Object.assign(document.createElement(tag), attributes);
  made.append(...children);
  return made;
}

/** Text in which `code` is marked. */
function marked(text) {
  return text.split("`").map((part, place) => (place % 2 ? element("code", { textContent: part }) : part));
}

const resolve = (schema, all) => (schema.$ref ? all.components.schemas[schema.$ref.split("/").at(-1)] : schema);

function kind(schema, all) {
  const options = (schema.anyOf ?? [schema]).filter((one) => one.type !== "null");
  return options.map((one) => {
    if (one.$ref) return one.$ref.split("/").at(-1);
    if (one.const !== undefined) return JSON.stringify(one.const);
    const range = (least, most) =>
      least !== undefined && most !== undefined ? `${least} to ${most}` : most !== undefined ? `up to ${most}` : least !== undefined ? `${least} or more` : "";
    if (one.type === "array") return `list of ${range(one.minItems, one.maxItems)} ${kind(one.items ?? {}, all)}`.replace("  ", " ");
    const limits = range(one.minimum, one.maximum) || (one.maxLength !== undefined ? `up to ${one.maxLength} characters` : "");
    return limits ? `${one.type}, ${limits}` : (one.type ?? "any");
  }).join(" or ");
}

function fields(schema, all) {
  const required = ([name]) => Boolean(schema.required?.includes(name));
  const sorted = Object.entries(schema.properties ?? {}).sort((one, other) => required(other) - required(one));
  const rows = sorted.map(([name, field]) =>
    element("tr", {},
      element("th", { scope: "row" }, element("code", { textContent: name })),
      element("td", { textContent: kind(field, all) + (schema.required?.includes(name) ? ", required" : "") }),
      element("td", {}, ...marked(field.description ?? ""))));
  return element("div", { className: "wide" }, element("table", {}, element("tbody", {}, ...rows)));
}

/** A body with the examples of its required fields. */
function example(schema, all) {
  const made = {};
  for (const name of schema.required ?? []) {
    const field = resolve(schema.properties[name], all);
    made[name] = field.examples?.[0] ?? { q: "2026年12月1日", source: "zh", target: "en" }[name] ?? "…";
  }
  return JSON.stringify(made);
}

function article(path, method, operation, all) {
  const id = `${method}${path.replaceAll("/", "-")}`;
  const made = element("article", { className: "card", id },
    element("h2", {}, element("span", { className: `method ${method}`, textContent: method.toUpperCase() }), " ", element("code", { textContent: path })),
    ...(operation.description ?? "").split("\n\n").filter(Boolean).map((part) => element("p", {}, ...marked(part))));
  const body = operation.requestBody?.content["application/json"]?.schema;
  let command = `curl ${location.origin}${path}`;
  if (operation.security) command += ` \\\n  -H "Authorization: Bearer $REGARD_API_KEY"`;
  if (body) {
    const schema = resolve(body, all);
    command += ` \\\n  -H 'Content-Type: application/json' -d '${example(schema, all)}'`;
    made.append(element("h3", { textContent: "Body" }), fields(schema, all));
  }
  made.append(element("h3", { textContent: "Try it" }), element("pre", { textContent: command, tabIndex: 0 }));
  const rows = Object.entries(operation.responses).map(([status, { description, content }]) => {
    const schema = content?.["application/json"]?.schema;
    const name = schema?.$ref ? schema.$ref.split("/").at(-1) : Object.keys(content ?? {}).join(", ");
    return element("tr", {}, element("th", { scope: "row", textContent: status }), element("td", { textContent: name }), element("td", {}, ...marked(description ?? "")));
  });
  made.append(element("h3", { textContent: "Answers" }), element("div", { className: "wide" }, element("table", {}, element("tbody", {}, ...rows))));
  return [id, made];
}

function schemaArticle(name, all) {
  const schema = all.components.schemas[name];
  return element("article", { className: "card", id: name },
    element("h2", {}, element("code", { textContent: name })),
    element("p", {}, ...marked(schema.description ?? "")), fields(schema, all));
}

async function begin() {
  const all = await (await fetch("/openapi.json")).json();
  document.getElementById("summary").textContent = `${all.info.summary ?? ""} Version ${all.info.version}.`;
  const articles = Object.entries(all.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => [path, ...article(path, method, operation, all)]));
  document.getElementById("contents").append(...articles.map(([path, id]) => element("li", {}, element("a", { href: `#${id}`, textContent: path }))));
  const answers = Object.keys(all.components.schemas).filter((name) => /(Response|Body|List)$/.test(name));
  document.getElementById("operations").append(...articles.map(([, , made]) => made), ...answers.map((name) => schemaArticle(name, all)));
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

themeButton(document.getElementById("theme"));
begin();
