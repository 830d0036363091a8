// Questions to the server; every failure becomes an Error with a sentence for people.

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("The server does not answer; is `scae explore` still running?");
  }
  let answer;
  try {
    answer = await response.json();
  } catch {
    throw new Error(`The server answered with status ${response.status} and nothing readable.`);
  }
  if (!response.ok) throw new Error(answer.detail ?? `The server refused (${response.status}).`);
  return answer;
}

export const get = (path) => ask(path);

export const post = (path, body) =>
  ask(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

// One question at a time; of those that come up meanwhile only the latest is asked.
export function latestOnly(question, answered, failed) {
  let busy = false;
  let waiting = false;
  async function run() {
    if (busy) {
      waiting = true;
      return;
    }
    busy = true;
    do {
      waiting = false;
      try {
        answered(await question());
      } catch (error) {
        failed(error);
      }
    } while (waiting);
    busy = false;
  }
  return run;
}

// The line at the bottom of the page that says what happened or went wrong.
const line = document.getElementById("notice");
let timer = 0;

export function say(sentence, bad = false) {
  clearTimeout(timer);
  line.textContent = sentence;
  line.classList.toggle("bad", bad);
  line.hidden = !sentence;
  if (sentence) timer = setTimeout(() => say(""), bad ? 12000 : 5000);
}
