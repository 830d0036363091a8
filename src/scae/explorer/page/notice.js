// The line at the top of the page that says what happened or went wrong.
const line = document.getElementById("notice");
let timer = 0;

export function say(sentence, bad = false) {
  clearTimeout(timer);
  line.textContent = sentence;
  line.classList.toggle("bad", bad);
  line.hidden = !sentence;
  if (sentence) timer = setTimeout(() => say(""), bad ? 12000 : 5000);
}
