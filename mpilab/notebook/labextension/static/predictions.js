// Predictions as forms. A cell with a line NAME = mpilab.predict("", …) is shown with a form above its
// source: radio buttons for choices=[…], a slider for between=(…, …), a text field otherwise. What is
// entered there is written into the source, between the quotes: the cell is the only place that holds
// it, with or without this extension. No kernel takes part.
//
// If the cell with NAME.answer("…", right=…) has literals only, the form can tell what happens, too.
// Otherwise the answer comes from the run, and that cell tells it.
//
// remoteEntry.js loads this file and passes the modules that JupyterLab shares.

const PREDICTION = /^\w+ = mpilab\.predict\(/gm;
const ANSWER = /^\w+\.answer\(/gm;

// Python's literals. Everything else (names, f-strings, calls) is left to Python.

const SPACE = /(?:\s|#.*)*/y;
const STRING = /"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'/y;
const NUMBER = /[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])/y;
const KEYWORD = /(\w+)\s*=(?!=)/y;
const ESCAPED = { n: '\n', t: '\t', '\\': '\\', '"': '"', "'": "'" };

// Reads the arguments of a call, from behind its parenthesis: {values, named, first}, where `first`
// is where the first value begins and ends. undefined if one of them is no literal.
const argumentsAt = (text, start) => {
  let at = start;
  let isLiteral = true;
  const take = pattern => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found) at = pattern.lastIndex;
    return found;
  };
  const skip = () => take(SPACE);
  const has = character => {
    skip();
    if (text[at] !== character) return false;
    at += 1;
    return true;
  };
  const unescaped = raw =>
    raw.replace(/\\(.)/g, (_, character) => {
      isLiteral &&= character in ESCAPED;
      return ESCAPED[character];
    });
  const several = close => {
    const values = [];
    while (isLiteral && !has(close)) {
      values.push(value());
      if (!has(',')) {
        isLiteral &&= has(close);
        break;
      }
    }
    return values;
  };
  const value = () => {
    if (has('[')) return several(']');
    if (has('(')) {
      const inside = several(')');
      return inside.length === 1 ? inside[0] : inside; // a value in parentheses, or a tuple
    }
    const number = take(NUMBER);
    if (number) return Number(number[0]);
    let whole;
    // Strings side by side are one.
    for (let part = take(STRING); part; part = take(STRING)) {
      whole = (whole ?? '') + unescaped(part[1] ?? part[2]);
      const end = at;
      skip();
      if (!/["']/.test(text[at] ?? '')) {
        at = end;
        break;
      }
    }
    isLiteral &&= whole !== undefined;
    return whole;
  };

  const found = { values: [], named: {}, first: undefined };
  while (isLiteral && !has(')')) {
    const name = take(KEYWORD);
    skip();
    const begin = at;
    const one = value();
    if (name) found.named[name[1]] = one;
    else found.values.push(one);
    if (!name && found.values.length === 1) found.first = [begin, at];
    if (!has(',')) {
      isLiteral &&= has(')');
      break;
    }
  }
  return isLiteral ? found : undefined;
};

const nameOf = text => /^\w+/.exec(text)[0];

// The predictions in the source of a cell that a form can show.
const predictionsIn = source =>
  [...source.matchAll(PREDICTION)].flatMap(match => {
    const called = argumentsAt(source, match.index + match[0].length);
    if (called?.values.length !== 1) return [];
    const { choices = [], between, unit = '' } = called.named;
    const text = String(called.values[0]);
    return [{ name: nameOf(match[0]), text, place: called.first, choices, between, unit }];
  });

// What the notebook says of a prediction by literals: {why, right}; undefined if a run must tell.
const answerOf = (notebook, name) => {
  for (const model of notebook.model.cells) {
    const source = model.sharedModel.getSource();
    for (const match of source.matchAll(ANSWER)) {
      if (nameOf(match[0]) !== name) continue;
      const called = argumentsAt(source, match.index + match[0].length);
      return called && { why: called.values[0], right: called.named.right };
    }
  }
};

// As mpilab.predict judges: a choice whatever its case, the only number in a text otherwise.
const isRight = (text, right) => {
  if (right === undefined) return undefined;
  if (typeof right === 'string') return text.toLowerCase() === right.toLowerCase();
  const numbers = text.match(/\d+(?:\.\d+)?/g) ?? [];
  if (numbers.length !== 1) return undefined;
  const [low, high] = Array.isArray(right) ? right : [right, right];
  return low <= Number(numbers[0]) && Number(numbers[0]) <= high;
};

const asPython = text => `"${text.replace(/["\\]/g, '\\$&').replace(/\s+/g, ' ')}"`;

const element = (tag, properties = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
};

// Fields. Each is made with the prediction and a function that takes what is entered, and is
// {nodes, show}: `show` sets the field to a text.

let number = 0; // of fields so far, for names and ids

const radioButtons = ({ choices }, enter) => {
  const name = `mpilab-prediction-${(number += 1)}`;
  const buttons = choices.map(value =>
    element('input', { type: 'radio', name, value, onchange: () => enter(value) })
  );
  return {
    nodes: buttons.map(button => element('label', {}, button, button.value)),
    show: text => {
      for (const button of buttons)
        button.checked = button.value.toLowerCase() === text.trim().toLowerCase();
    }
  };
};

const slider = ({ between: [min, max], unit }, enter) => {
  const step = [min, max].every(Number.isInteger) ? 1 : 0.1;
  const limits = { min, max, step };
  const range = element('input', { type: 'range', ...limits, ariaLabel: 'Your prediction, slider' });
  const exact = element('input', { type: 'number', ...limits, ariaLabel: 'Your prediction, number' });
  range.oninput = () => enter(range.value);
  exact.oninput = () => enter(exact.value);
  return {
    nodes: [String(min), range, String(max), exact, unit],
    show: text => {
      const [value = ''] = text.match(/\d+(?:\.\d+)?/) ?? [];
      if (range.value !== value) range.value = value; // the middle, if there is none
      if (exact.value !== value) exact.value = value;
      range.ariaValueText = value ? `${value} ${unit}`.trim() : 'not answered';
    }
  };
};

const textField = ({ unit }, enter) => {
  const field = element('input', { type: 'text', ariaLabel: 'Your prediction' });
  field.oninput = () => enter(field.value);
  return {
    nodes: [field, unit],
    show: text => {
      if (field.value !== text) field.value = text;
    }
  };
};

const fieldFor = prediction =>
  prediction.choices.length ? radioButtons : prediction.between ? slider : textField;

// The form of one prediction. `read` gives the prediction as the source has it now.
const formOf = (notebook, cell, read) => {
  const shape = read();
  const write = text => {
    const [from, to] = read().place;
    cell.model.sharedModel.updateSource(from, to, asPython(text));
  };
  const field = fieldFor(shape)(shape, write);
  const told = element('div', { className: 'mpilab-prediction-told', role: 'status' });
  const later = element('small', {
    textContent: 'To see what happens, run this cell and the folded one below.'
  });
  const button = element('button', {
    type: 'button',
    className: 'jp-Button jp-mod-styled jp-mod-accept',
    textContent: 'Show what happens',
    title: 'Works without a kernel, too'
  });
  button.onclick = () => {
    const { text } = read();
    const { why, right } = answerOf(notebook, shape.name);
    const mark = { true: '✓ Right.', false: '✗ Not right.' }[isRight(text, right)];
    told.textContent = `${mark ?? 'What happens:'} ${why}`;
    told.dataset.right = String(isRight(text, right));
  };
  const node = element(
    'fieldset',
    { className: 'mpilab-prediction', disabled: cell.readOnly },
    element('legend', { textContent: 'Your prediction' }),
    element('div', { className: 'mpilab-prediction-field' }, ...field.nodes),
    element('div', {}, button, later),
    told
  );
  let shown;
  const show = () => {
    const { text } = read();
    if (text === shown) return;
    shown = text;
    field.show(text);
    told.textContent = '';
    const isLiteral = answerOf(notebook, shape.name) !== undefined;
    button.hidden = !text || !isLiteral;
    later.hidden = !text || isLiteral;
  };
  show();
  return { node, show };
};

const STYLE = `
.mpilab-predictions {
  margin-left: calc(var(--jp-cell-collapser-width) + var(--jp-cell-prompt-width));
  color: var(--jp-content-font-color1);
  font-family: var(--jp-content-font-family);
  font-size: var(--jp-content-font-size1);
}
.mpilab-prediction {
  border: var(--jp-border-width) solid var(--jp-border-color1);
  border-radius: var(--jp-border-radius);
  margin: 0 0 4px;
  padding: 2px 10px 8px;
}
.mpilab-prediction button { margin-top: 6px; }
.mpilab-prediction [hidden] { display: none; }
.mpilab-prediction legend { font-weight: 600; padding: 0 4px; }
.mpilab-prediction-field { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 16px; }
.mpilab-prediction label { display: flex; align-items: center; gap: 4px; min-height: 24px; }
.mpilab-prediction input { accent-color: var(--jp-brand-color1); margin: 0; }
.mpilab-prediction input:is([type=text], [type=number]) {
  background: var(--jp-layout-color1);
  border: var(--jp-border-width) solid var(--jp-content-font-color2);
  color: inherit;
  font: inherit;
  min-height: 24px;
  padding: 0 6px;
}
.mpilab-prediction input[type=text] { flex: 1 1 20em; }
.mpilab-prediction input[type=number] { width: 6em; }
.mpilab-prediction input[type=range] { flex: 0 1 24em; min-height: 24px; }
.mpilab-prediction input:focus-visible { outline: 2px solid var(--jp-brand-color1); outline-offset: 1px; }
.mpilab-prediction-told:not(:empty) {
  border-left: 3px solid var(--jp-content-font-color2);
  margin-top: 6px;
  padding-left: 8px;
}
.mpilab-prediction-told[data-right=true] { border-color: var(--jp-success-color1); }
.mpilab-prediction-told[data-right=false] { border-color: var(--jp-error-color1); }
`;

// JupyterLab's shortcuts in command mode are plain keys, and the arrows are among them: they belong to
// the form while it has the focus. Those with Ctrl or Cmd, such as Ctrl+S, remain JupyterLab's.
const keepKeys = event => {
  if (!event.target.closest?.('.mpilab-predictions')) return;
  const isJupyterLabs = (event.ctrlKey || event.metaKey) && event.key !== 'Enter';
  event.target.toggleAttribute('data-lm-suppress-shortcuts', !isJupyterLabs);
};

// Shows the forms of a cell for as long as its source has predictions.
const equip = async (app, Widget, notebook, cell) => {
  await cell.ready;
  if (cell.isDisposed) return;
  const read = () => predictionsIn(cell.model.sharedModel.getSource());
  const widget = new Widget();
  widget.addClass('mpilab-predictions');
  widget.node.addEventListener('keydown', event => {
    if (event.key === 'Escape') cell.node.focus();
    if (event.key !== 'Enter' || !(event.shiftKey || event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    void app.commands.execute(
      event.shiftKey ? 'notebook:run-cell-and-select-next' : 'notebook:run-cell'
    );
  });
  let forms = [];
  let shape = '';
  const update = () => {
    const found = read();
    // Everything but what the student writes: when this changes, the forms are made anew.
    const now = JSON.stringify(found.map(one => ({ ...one, text: '', place: [] })));
    if (now !== shape) {
      forms = found.map((_, index) => formOf(notebook, cell, () => read()[index]));
      widget.node.replaceChildren(...forms.map(form => form.node));
      shape = now;
    } else for (const form of forms) form.show();
    if (found.length && !widget.parent) {
      const { layout, inputArea } = cell;
      layout.insertWidget(layout.widgets.indexOf(inputArea.parent), widget);
    } else if (!found.length) widget.parent = null;
  };
  cell.model.contentChanged.connect(update);
  cell.disposed.connect(() => widget.dispose());
  update();
};

export const plugin = (name, { Widget }, { INotebookTracker }) => ({
  id: `${name}:predictions`,
  description: 'Shows the predictions of the labs as forms.',
  autoStart: true,
  requires: [INotebookTracker],
  activate: (app, tracker) => {
    document.head.append(element('style', { textContent: STYLE }));
    window.addEventListener('keydown', keepKeys, true);
    tracker.widgetAdded.connect((_, { content: notebook }) => {
      const known = new WeakSet();
      const look = () => {
        for (const cell of notebook.widgets) {
          if (known.has(cell) || cell.model.type !== 'code') continue;
          known.add(cell);
          void equip(app, Widget, notebook, cell);
        }
      };
      const watch = () => {
        notebook.model?.cells.changed.connect(look);
        look();
      };
      notebook.modelChanged.connect(watch);
      watch();
    });
  }
});
