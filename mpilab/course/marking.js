// The page for reading and grading free text (mpilab/course/manual.py).
// What students wrote only ever becomes text: textContent, never HTML.
"use strict";

const byId = (name) => document.getElementById(name);
let exercises = [];
let current = 0;

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function say(text, wrong = false) {
  byId("said").textContent = text;
  byId("said").className = wrong ? "wrong" : "";
}

async function ask(path, options) {
  const response = await fetch(path, options);
  const content = await response.json();
  if (!response.ok) throw new Error(content.error);
  return content;
}

async function load() {
  const content = await ask("answers");
  exercises = content.exercises;
  byId("lab").textContent = content.lab;
  document.title = `Grading ${content.lab}`;
  if (!exercises.length) return say("This lab has no free text to grade.");
  show(0);
}

const waits = (item) => item.points === null;
const open = (exercise) => exercise.answers.flatMap((each) => each.items).filter(waits).length;

function show(number) {
  say("");
  current = (number + exercises.length) % exercises.length;
  const exercise = exercises[current];
  byId("answers").replaceChildren(...exercise.answers
    .filter((answer) => !byId("waiting").checked || answer.items.some(waits))
    .map(card));
  criteria(exercise);
  tell();
  const next = pointsOf().find((input) => input.value === "") ?? pointsOf()[0];
  next?.focus();
}

// What the lab says that points are given for; verdicts of an older mpilab do not have it.
function criteria(exercise) {
  const items = exercise.answers[0]?.items ?? [];
  const said = items.flatMap((item) => item.criteria).map(({ points, text }) =>
    element("li", { textContent: `${text}: ${points}` }));
  byId("criteria").replaceChildren(...said);
  byId("criteria").hidden = !said.length;
}

function tell() {
  byId("exercises").replaceChildren(...exercises.map((exercise, number) => {
    const button = element("button", { textContent: `${exercise.title} (${open(exercise)})` });
    button.setAttribute("aria-current", String(number === current));
    button.addEventListener("click", () => show(number));
    return button;
  }));
  const exercise = exercises[current];
  const all = exercise.answers.flatMap((each) => each.items).length;
  byId("progress").textContent = `${all - open(exercise)} of ${all} have points`;
}

function card(answer, number) {
  const name = byId("names").checked ? `Answer ${number + 1}` : answer.student;
  const text = answer.known ? answer.text :
    "The gradebook does not hold this text: run 'mpilab grade' on the class again.";
  const shown = element("div", { className: "text", textContent: text, tabIndex: -1 });
  const made = element("article", {}, element("h2", { textContent: name }), shown,
    ...answer.items.map((item) => row(answer, item, name)));
  made.setAttribute("aria-label", name);
  return made;
}

function row(answer, item, name) {
  const points = element("input", {
    type: "text", inputMode: "decimal", className: "points", autocomplete: "off",
    value: item.points ?? "", placeholder: item.proposal ?? "",
  });
  points.setAttribute("aria-label", `Points for ${name}, ${item.title}, at most ${item.most}`);
  const comment = element("textarea", { className: "comment", rows: 1, value: item.comment });
  const state = element("p", { className: "state" });
  if (item.proposal !== null) state.textContent = `${item.proposal} points were given for an earlier text.`;
  const save = () => give(answer, item, { points, comment, state, name });
  for (const field of [points, comment]) field.addEventListener("change", save);
  points.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); save().then((ok) => ok && go(points, 1)); }
    if (event.key === "ArrowDown") { event.preventDefault(); go(points, 1); }
    if (event.key === "ArrowUp") { event.preventDefault(); go(points, -1); }
  });
  comment.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.ctrlKey) save().then((ok) => ok && go(points, 1));
    if (event.key === "Escape") points.focus();
  });
  return element("div", { className: "item" },
    ...(answer.items.length > 1 ? [element("h3", { textContent: item.title })] : []),
    element("label", {}, `Points / ${item.most}`, points),
    element("label", {}, "Comment for the student", comment), state);
}

// Saves in progress, so that Enter and the change event that follows save only once.
const sent = new Map();

function complain(state, text) {
  state.className = "state wrong";
  state.textContent = text;
  return false;
}

async function give(answer, item, fields) {
  const { points, comment, state } = fields;
  const typed = points.value.trim().replace(",", ".");
  const value = typed === "" ? null : Number(typed);
  const words = comment.value.trim();
  if (Number.isNaN(value) || value < 0 || value > item.most) {
    return complain(state, `${points.value}: write a number from 0 to ${item.most}.`);
  }
  if (value === null && item.points === null && words) {
    return complain(state, "Not saved yet: a comment needs points.");
  }
  if (value === item.points && words === item.comment) return true;
  const body = JSON.stringify({
    student: answer.student, exercise: exercises[current].id, item: item.id, about: answer.about,
    points: value, comment: words,
  });
  if (sent.get(item)?.body !== body) sent.set(item, { body, done: post(body, item, fields) });
  const done = await sent.get(item).done;
  sent.delete(item);
  return done;
}

async function post(body, item, { state, name }) {
  try {
    const kept = await ask("points", {
      method: "POST", body, headers: { "Content-Type": "application/json" },
    });
    item.points = kept.points;
    item.comment = kept.comment;
    state.className = "state saved";
    state.textContent = kept.points === null ? "Points withdrawn." : "Saved.";
    say(`${name}: ${kept.points ?? "no"} of ${item.most} points saved.`);
    tell();
    return true;
  } catch (error) {
    complain(state, error instanceof TypeError
      ? "Not saved: the page is no longer served. Start 'mpilab marks page' again."
      : `Not saved: ${error.message}`);
    say(`${name}: ${state.textContent}`, true);
    return false;
  }
}

const pointsOf = () => [...document.querySelectorAll("input.points")];

function go(from, by) {
  const fields = pointsOf();
  const next = fields[fields.indexOf(from) + by];
  if (next) {
    next.focus();
    next.select();
    next.closest("article").scrollIntoView({ block: "nearest" });
  } else if (by > 0) {
    say(open(exercises[current]) ? "This is the last answer; some before it have no points yet." :
      "All answers of this exercise have points.");
  }
}

document.addEventListener("keydown", (event) => {
  if (!event.altKey || !["ArrowLeft", "ArrowRight"].includes(event.key) || !exercises.length) return;
  event.preventDefault();
  document.activeElement?.blur();  // a field is saved when it loses the focus
  show(current + (event.key === "ArrowRight" ? 1 : -1));
});
for (const box of ["names", "waiting"]) byId(box).addEventListener("change", () => show(current));
load().catch((error) => say(`Not loaded: ${error.message}`, true));
