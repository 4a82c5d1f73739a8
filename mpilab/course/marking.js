// The page for reading and grading free text (mpilab/course/manual.py).
// HTML comes only from mpilab/course/prose.py, which turns no tag of a student's into one; all else
// that people wrote becomes text.
"use strict";

const byId = (name) => document.getElementById(name);
let exercises = [];
let current = 0;
const UNSAVED = "Not saved yet.";
const known = new Map();  // the items, by what the server calls them
const undoable = [];
const keyOf = (student, exercise, item) => JSON.stringify([student, exercise, item]);

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
  if (!response.ok) throw Object.assign(new Error(content.error), { now: content.now });
  return content;
}

async function load() {
  const content = await ask("answers");
  exercises = content.exercises;
  byId("lab").textContent = content.lab;
  document.title = `Grading ${content.lab}`;
  for (const exercise of exercises) for (const answer of exercise.answers) for (const item of answer.items) {
    Object.assign(item, { answer, exercise });
    known.set(keyOf(answer.student, exercise.id, item.id), item);
  }
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
  byId("asked").hidden = !exercise.question && !exercise.model && byId("criteria").hidden;
  for (const part of ["question", "model"]) {
    byId(part).hidden = !exercise[part];
    byId(part).querySelector(".prose").innerHTML = exercise[part];
  }
  scrollableByKeyboard();
  tell();
  const next = pointsOf().find((input) => input.value === "") ?? pointsOf()[0];
  next?.focus();
}

// A text that is longer than its box can be focused, so that the arrow keys scroll it.
function scrollableByKeyboard() {
  for (const text of document.querySelectorAll("article .text")) {
    text.tabIndex = text.scrollHeight > text.clientHeight ? 0 : -1;
  }
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
  byId("bar").max = all;
  byId("bar").value = all - open(exercise);
  byId("undo").disabled = !undoable.length;
}

function card(answer, number) {
  const name = byId("names").checked ? `Answer ${number + 1}` : answer.student;
  const text = answer.known ? answer.text :
    "The gradebook does not hold this text: run 'mpilab grade' on the class again.";
  const written = byId("source").checked || !answer.known;
  const shown = element("div", { className: written ? "text" : "text prose", tabIndex: -1 });
  if (written) shown.textContent = text;
  else shown.innerHTML = answer.html;
  const made = element("article", {}, element("h2", { textContent: name }), shown,
    ...answer.items.map((item) => row(answer, item, name)));
  made.setAttribute("aria-label", name);
  made.addEventListener("focusin", () => { beside(answer); look(); });
  return made;
}

// The student's feedback page, with all code and output, beside the answer in focus.
function beside(answer) {
  const wanted = byId("code").checked && !byId("names").checked;
  byId("beside").hidden = !wanted;
  byId("work").className = wanted ? "two" : "";
  const frame = byId("beside").querySelector("iframe");
  const address = `page/${encodeURIComponent(answer.student)}`;
  if (wanted && frame.getAttribute("src") !== address) frame.setAttribute("src", address);
}

function focused() {
  const name = document.activeElement?.closest("article")?.getAttribute("aria-label");
  const answers = exercises[current]?.answers ?? [];
  return answers.find((each) => each.student === name) ?? answers[0];
}

// One button for each criterion; together they make up the points.
function choices(item, points, state) {
  const buttons = item.criteria.map((one, number) => {
    const letter = "abcdefghi"[number];
    const button = element("button", { type: "button", title: one.text },
      ...(letter ? [element("kbd", { textContent: letter }), " "] : []), `${one.text}: ${one.points}`);
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      const sum = item.criteria.reduce((all, each, at) =>
        all + (buttons[at].getAttribute("aria-pressed") === "true" ? each.points : 0), 0);
      points.value = String(Math.round(sum * 1000) / 1000);
      state.className = "state";
      state.textContent = UNSAVED;
    });
    return button;
  });
  return buttons;
}

// The comments that were given on this item, those used most often first.
function used(item) {
  const counts = new Map();
  for (const each of known.values()) {
    if (each.exercise === item.exercise && each.id === item.id && each.comment) {
      counts.set(each.comment, (counts.get(each.comment) ?? 0) + 1);
    }
  }
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, 9).map(([text]) => text);
}

function row(answer, item, name) {
  const points = element("input", {
    type: "text", inputMode: "decimal", className: "points", autocomplete: "off",
    value: item.points ?? "", placeholder: item.proposal ?? "",
  });
  points.setAttribute("aria-label", `Points for ${name}, ${item.title}, at most ${item.most}`);
  const comment = element("textarea", { className: "comment", rows: 1, value: item.comment });
  const state = element("p", { className: "state" });
  const buttons = choices(item, points, state);
  item.fields = { points, comment, state, buttons };
  const again = element("div", { className: "used" });
  const take = (number) => {
    const text = used(item)[number];
    if (text === undefined) return;
    comment.value = text;
    comment.focus();
  };
  if (item.proposal !== null) state.textContent = `${item.proposal} points were given for an earlier text.`;
  // What somebody else gave meanwhile is replaced only by a key that says so, not by moving on.
  const save = (meant) => {
    if (item.contested && !meant) return false;
    item.contested = false;
    return give(answer, item, { points, comment, state, name });
  };
  for (const field of [points, comment]) field.addEventListener("change", () => save(false));
  points.addEventListener("keydown", (event) => {
    const button = event.ctrlKey || event.altKey || event.metaKey ? undefined
      : buttons["abcdefghi".indexOf(event.key)];
    if (button) { event.preventDefault(); button.click(); }
  });
  points.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); save(true).then((ok) => ok && go(points, 1)); }
    if (event.key === "ArrowDown") { event.preventDefault(); go(points, 1); }
    if (event.key === "ArrowUp") { event.preventDefault(); go(points, -1); }
  });
  comment.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.ctrlKey) save(true).then((ok) => ok && go(points, 1));
    if (event.key === "Escape") points.focus();
  });
  const made = element("div", { className: "item" },
    ...(answer.items.length > 1 ? [element("h3", { textContent: item.title })] : []),
    ...(buttons.length ? [element("div", { className: "choices" }, ...buttons)] : []),
    element("label", {}, `Points / ${item.most}`, points),
    element("label", {}, "Comment for the student", comment), again, state);
  made.addEventListener("focusin", () => again.replaceChildren(...used(item).map((text, number) => {
    const button = element("button", { type: "button" },
      element("kbd", { textContent: `Alt ${number + 1}` }), ` ${text}`);
    button.addEventListener("click", () => take(number));
    return button;
  })));
  made.addEventListener("focusout", (event) => {
    if (made.contains(event.relatedTarget)) return;
    again.replaceChildren();
    save(false);
  });
  made.addEventListener("keydown", (event) => {
    const digit = shortcut(event);
    if (!/^[1-9]$/.test(digit)) return;
    event.preventDefault();
    take(Number(digit) - 1);
  });
  return made;
}

// The digit or letter that is pressed with Alt, or "". With Option, a Mac types another sign (Alt+Z
// is an omega), and a French keyboard has digits only with Shift: then the place of the key tells.
function shortcut(event) {
  if (!event.altKey || event.ctrlKey || event.metaKey) return "";
  const place = /^(?:Digit|Numpad|Key)([0-9A-Z])$/.exec(event.code);
  return /^[0-9a-z]$/i.test(event.key) || !place ? event.key.toLowerCase() : place[1].toLowerCase();
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
  const wanted = JSON.stringify([value, words]);
  let saving = sent.get(item);
  while (saving && saving.wanted !== wanted) {  // the server must see them one after the other
    await saving.done;
    if (sent.get(item) === saving) sent.delete(item);
    saving = sent.get(item);
  }
  if (!saving) {
    if (value === item.points && words === item.comment) {
      if (state.textContent === UNSAVED) state.textContent = "";
      return true;
    }
    saving = { wanted, done: post(bodyOf(item, value, words), item, fields) };
    sent.set(item, saving);
  }
  const done = await saving.done;
  if (sent.get(item) === saving) sent.delete(item);
  return done;
}

function bodyOf(item, points, comment) {
  const { answer, exercise } = item;
  return JSON.stringify({
    student: answer.student, exercise: exercise.id, item: item.id, about: answer.about,
    points, comment, seen: item.token,
  });
}

function adopt(item, kept) {
  Object.assign(item, { points: kept.points, comment: kept.comment, token: kept.token });
}

function fill(item) {
  item.fields.points.value = item.points ?? "";
  item.fields.comment.value = item.comment;
  for (const button of item.fields.buttons) button.setAttribute("aria-pressed", "false");
}

// What other graders gave meanwhile; never into a field that this one is changing.
let looked = Date.now();
async function look() {
  if (Date.now() - looked < 1000) return;
  looked = Date.now();
  for (const each of await ask("given").catch(() => [])) {
    const item = known.get(keyOf(each.student, each.exercise, each.item));
    if (!item || item.token === each.token || item.answer.about !== each.about || sent.has(item)) continue;
    const { points, comment, state } = item.fields ?? {};
    if (points && (points.value !== String(item.points ?? "") || comment.value.trim() !== item.comment)) continue;
    adopt(item, each);
    if (!points) continue;
    fill(item);
    state.className = "state";
    state.textContent = "Given by somebody else meanwhile.";
  }
  tell();
}

async function undo() {
  const last = undoable.pop();
  if (!last) return;
  const { item, points, comment } = last;
  try {
    adopt(item, await ask("points", {
      method: "POST", body: bodyOf(item, points, points === null ? "" : comment),
      headers: { "Content-Type": "application/json" },
    }));
    if (exercises[current] !== item.exercise) show(exercises.indexOf(item.exercise));
    fill(item);
    item.fields.state.className = "state saved";
    item.fields.state.textContent = "As before.";
    item.fields.points.focus();
    say(`${item.fields.points.closest("article").getAttribute("aria-label")}: undone, ` +
      `${item.points ?? "no"} points.`);
  } catch (error) {
    say(`Not undone: ${error.message}`, true);
  }
  tell();
}

async function post(body, item, { state, name }) {
  try {
    const kept = await ask("points", {
      method: "POST", body, headers: { "Content-Type": "application/json" },
    });
    undoable.push({ item, points: item.points, comment: item.comment });
    adopt(item, kept);
    state.className = "state saved";
    state.textContent = kept.points === null ? "Points withdrawn." : "Saved.";
    say(`${name}: ${kept.points ?? "no"} of ${item.most} points saved.`);
    tell();
    return true;
  } catch (error) {
    if (error.now) {
      adopt(item, error.now);
      item.contested = true;
    }
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

const shortcuts = {
  z: undo,
  c: () => byId("code").click(),
  m: () => {
    const closed = !byId("model").open;
    for (const part of ["question", "model"]) byId(part).open = closed;
    (closed ? byId("asked") : document.activeElement).scrollIntoView({ block: closed ? "start" : "nearest" });
  },
};
document.addEventListener("keydown", (event) => {
  const call = shortcuts[shortcut(event)];
  if (!call || !exercises.length) return;
  event.preventDefault();
  call();
});
document.addEventListener("keydown", (event) => {
  if (!event.altKey || !["ArrowLeft", "ArrowRight"].includes(event.key) || !exercises.length) return;
  event.preventDefault();
  document.activeElement?.blur();  // a field is saved when it loses the focus
  show(current + (event.key === "ArrowRight" ? 1 : -1));
});
for (const box of ["names", "waiting", "source"]) byId(box).addEventListener("change", () => show(current));
byId("code").addEventListener("change", () => {
  if (byId("code").checked && byId("names").checked) say("Code and output name the student: show names first.");
  const answer = focused();
  if (answer) beside(answer);
});
byId("undo").addEventListener("click", undo);
addEventListener("resize", scrollableByKeyboard);
load().catch((error) => say(`Not loaded: ${error.message}`, true));
