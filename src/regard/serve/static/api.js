/** Requests to the server: JSON in and out, with the key if there is one; errors say what the server said. */

export class ServerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

let key = null;
try {
  key = sessionStorage.getItem("regard-key");
} catch {
  // Without storage the key is asked for on each visit.
}

/** Use a key from now on; it is kept for this tab only. */
export function useKey(value) {
  key = value || null;
  try {
    if (key) sessionStorage.setItem("regard-key", key);
    else sessionStorage.removeItem("regard-key");
  } catch {
    // See above.
  }
}

/** GET, or POST if there is a body. */
export async function ask(path, body, signal) {
  const headers = {};
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method: body === undefined ? "GET" : "POST", headers, signal, body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError(0, "The server does not answer. Is it still running?");
  }
  const answer = await response.json().catch(() => null);
  if (!response.ok || answer === null) throw new ServerError(response.status, answer?.error ?? `the server answered ${response.status}`);
  return answer;
}
