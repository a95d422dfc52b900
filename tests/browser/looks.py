"""What tests ask a page in a browser: scripts that look at it, and the contrast of colours."""

TEXT_CONTRAST = 4.5
SHAPE_CONTRAST = 3.0
# The largest ratio on the axis of pictures of ratios.
AXIS_END = 20

# Everything that has text of its own or is drawn, with its colour and what lies behind it.
COLOURS = """
const parse = text => {
  const numbers = text.match(/[\\d.]+/g).map(Number);
  return numbers.length > 3 ? numbers : [...numbers, 1];
};
const behind = element => {
  for (let at = element; at; at = at.parentElement) {
    const colour = parse(getComputedStyle(at).backgroundColor);
    if (colour[3] > 0.99) return colour;
  }
  return [255, 255, 255, 1];
};
const found = [];
for (const element of document.body.querySelectorAll('*')) {
  if (!element.checkVisibility() || element.closest('.skip')) continue;
  const style = getComputedStyle(element);
  const own = [...element.childNodes].some(n => n.nodeType === 3 && n.data.trim());
  const box = element.getBoundingClientRect();
  if (box.width === 0) continue;
  const drawing = element.ownerSVGElement;
  const name = element.tagName + '.' + element.getAttribute('class') + ' ' + element.textContent.trim().slice(0, 30);
  if (drawing) {
    const behindIt = behind(drawing);
    if (element.tagName === 'text') found.push(['text', name, parse(style.fill), behindIt, box.height]);
    if (element.tagName === 'polyline' && element.getAttribute('opacity') === '1' && !element.matches('[stroke="#D0D0D0"], [stroke="#FFFFFF"]'))
      found.push(['shape', name + element.outerHTML.slice(0, 90), parse(style.stroke), behindIt]);
    if (element.matches('rect, polygon, circle') && element.getAttribute('opacity') === '1' && !element.matches('[fill="#FFFFFF"]'))
      found.push(['shape', name + element.outerHTML.slice(0, 90), parse(style.fill), behindIt]);
  } else if (own && !['TITLE', 'DESC', 'STYLE'].includes(element.tagName)) {
    found.push(['text', name, parse(style.color), behind(element), 0]);
  }
}
return found;
"""

SEMANTICS = """
const wrong = [];
const all = selector => [...document.querySelectorAll(selector)];
const ids = all('[id]').map(e => e.id);
ids.filter((id, i) => ids.indexOf(id) !== i).forEach(id => wrong.push('id twice: ' + id));
for (const name of ['aria-labelledby', 'aria-describedby', 'for'])
  for (const e of all('[' + name + ']'))
    for (const id of e.getAttribute(name).split(' '))
      if (!document.getElementById(id)) wrong.push(name + ' leads nowhere: ' + id);
for (const a of all('a'))
  if (!document.getElementById(decodeURIComponent(a.hash.slice(1)))) wrong.push('link leads nowhere: ' + a.outerHTML);
if (all('h1').length !== 1) wrong.push('not one h1');
if (all('main').length !== 1) wrong.push('not one main');
let level = 0;
for (const h of all('h1,h2,h3,h4,h5,h6')) {
  const now = Number(h.tagName[1]);
  if (now > level + 1) wrong.push('heading skips a level: ' + h.outerHTML);
  level = now;
}
for (const svg of all('svg')) {
  if (svg.getAttribute('aria-hidden') === 'true') continue;
  const title = svg.querySelector(':scope > title'), desc = svg.querySelector(':scope > desc');
  if (svg.getAttribute('role') !== 'img' || !title?.textContent || !desc?.textContent)
    wrong.push('picture without text: ' + svg.outerHTML.slice(0, 120));
}
for (const table of all('table')) {
  if (!table.caption?.textContent) wrong.push('table without caption');
  for (const th of table.querySelectorAll('th')) if (!th.scope) wrong.push('th without scope: ' + th.outerHTML);
  const columns = new Set([...table.rows].map(row => row.cells.length));
  if (columns.size !== 1) wrong.push('table with ragged rows: ' + table.caption.textContent);
  if (!table.closest('.scroll')) wrong.push('table outside of a box that scrolls');
}
for (const list of all('ul,ol')) for (const item of list.children) if (item.tagName !== 'LI') wrong.push('no li: ' + item.tagName);
for (const input of all('input')) if (!input.labels.length) wrong.push('input without label');
for (const mark of all('.mark')) if (!/win|loss|tie|one round|other work/.test(mark.textContent)) wrong.push('mark without word');
for (const details of all('details')) if (details.firstElementChild.tagName !== 'SUMMARY') wrong.push('details without summary');
for (const section of all('section.workload')) if (!section.querySelector('details table')) wrong.push('pictures without table');
for (const e of all('*')) for (const a of e.attributes) if (a.name.startsWith('on')) wrong.push('handler: ' + a.name);
for (const e of all('[tabindex]')) if (e.tabIndex > 0) wrong.push('tabindex above 0');
if (all('iframe,object,embed,img').length) wrong.push('an element that the page must not have');
if (all('script').length !== 1) wrong.push('not one script');
if (document.documentElement.lang !== 'en') wrong.push('no language');
return wrong;
"""

# Every table as it stands: its caption, its heads, and the text of its cells.
TABLES = """
return [...document.querySelectorAll('main table')].map(table => ({
  caption: table.caption.textContent,
  heads: [...table.tHead.rows[0].cells].map(cell => cell.textContent),
  rows: [...table.tBodies[0].rows].map(row => [...row.cells].map(cell => cell.textContent)),
}));
"""

# The cells of one table: their figure, whether they say that there is none, their text.
CELLS = """
return [...arguments[0].tBodies[0].rows].map(row => [...row.cells].map(cell => {
  const own = [...cell.children];
  const figure = own.find(child => child.tagName === 'DATA');
  const none = !figure && own.some(child => child.matches('.absent, .mark'));
  return [figure ? Number(figure.value) : null, none, cell.textContent.trim()];
}));
"""

# A table of ratios by its selector: for each workload the figure of ours, where it has a column, and
# for each engine both medians, the ratio, the mark and the text of the ratio.
RATIOS = """
const table = document.querySelector(arguments[0]);
return [...table.tBodies[0].rows].map(row => [
  row.dataset.workload, row.cells[1].querySelector(':scope > .figure')?.value,
  Object.fromEntries([...row.cells].filter(cell => cell.dataset.engine).map(cell => [cell.dataset.engine, [
    [...cell.querySelectorAll('.figure')].map(figure => figure.value), cell.querySelector('.ratio')?.value,
    cell.querySelector('.mark')?.textContent, cell.querySelector('.ratio')?.textContent]]))]);
"""

# The pictures of ratios in a section: ticks of the axis, and text, whisker and mark of each row.
PANELS = """
const numbers = text => text.trim().split(/[ ,]+/).map(Number);
return [...document.querySelectorAll(arguments[0] + ' figure')].map(figure => {
  const rows = [...figure.querySelectorAll('svg > g')];
  const axis = rows.pop();
  return {
    workload: figure.querySelector('figcaption b').textContent,
    leading: figure.querySelector('.leading')?.textContent,
    ticks: [...axis.querySelectorAll('text')].map(t => [Number(t.getAttribute('x')), parseFloat(t.textContent)]),
    rows: rows.map(row => ({
      column: Number(row.dataset.column),
      texts: [...row.querySelectorAll('text')].map(text => text.textContent.trim()),
      whisker: [...row.querySelectorAll('polyline[stroke="#222222"]')]
        .map(line => numbers(line.getAttribute('points'))).filter(line => line[1] === line[3])[0] ?? null,
      arrows: [...row.querySelectorAll('polyline[stroke="#222222"]')]
        .filter(line => numbers(line.getAttribute('points')).length === 6).length,
      mark: numbers([...row.querySelectorAll('polygon')].at(-1)?.getAttribute('points') ?? '')
        .filter((_, place) => place % 2 === 0),
    })),
  };
});
"""

# Elements of an engine that can be seen, and what shows its name. (Groups in pictures have no boxes where
# they are not displayed, and yet Chromium's `checkVisibility` says that they can be seen.)
SEEN = """
const [column, name] = arguments;
const seen = elements => [...elements].filter(e => e.checkVisibility() && e.getClientRects().length).map(e => e.outerHTML.slice(0, 90));
const named = [...document.querySelectorAll('article th, article svg text, article ul.legend li')];
return [seen(document.querySelectorAll(`article [data-column="${column}"]`)),
        seen(named.filter(element => new RegExp(`\\\\b${name}\\\\b`).test(element.textContent)))];
"""

# For each picture of rows its height, and the place and the height of each row that can be seen.
STACKS = """
const stacks = [...document.querySelectorAll('svg')].filter(svg => svg.querySelector(':scope > g[data-height]'));
return stacks.filter(svg => svg.checkVisibility()).map(svg => [svg.viewBox.baseVal.height,
  [...svg.querySelectorAll(':scope > g')].filter(row => row.getClientRects().length).map(row =>
    [Number(row.getAttribute('transform').match(/translate\\(0 (\\d+)\\)/)[1]), Number(row.dataset.height)])]);
"""

# For each picture its name, its frame, and text and frame of each label.
LABELS = """
const frame = element => {
  const box = element.getBoundingClientRect();
  return [box.left, box.top, box.right, box.bottom];
};
return [...document.querySelectorAll('svg[role="img"]')].filter(svg => svg.checkVisibility()).map(svg => [
  svg.querySelector('title').textContent, frame(svg),
  [...svg.querySelectorAll('text')].filter(t => t.checkVisibility()).map(t => [t.textContent.trim(), frame(t)])]);
"""

# For each table what of it cannot be seen or reached by scrolling its box.
REACH = """
return [...document.querySelectorAll('main table')].map(table => {
  const box = table.closest('.scroll'), rows = [...table.rows];
  const cells = rows.flatMap(row => [...row.cells]);
  const hidden = cells.filter(cell => !cell.checkVisibility() || cell.getBoundingClientRect().width < 20);
  box.scrollLeft = box.scrollWidth;
  const edge = box.getBoundingClientRect();
  const beyond = rows.filter(row => [...row.cells].at(-1).getBoundingClientRect().right > edge.right + 1);
  const first = rows[1].cells[0].getBoundingClientRect();
  const covered = rows.filter(row => row.cells.length > 1 && [...row.cells].at(-1).getBoundingClientRect().right <= first.right + 20);
  box.scrollLeft = 0;
  return [table.caption.textContent, hidden.length, beyond.length, covered.length, first.width / edge.width];
});
"""


def luminance(colour):
    def linear(channel):
        channel /= 255
        return channel / 12.92 if channel <= 0.03928 else ((channel + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(channel) for channel in colour[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    light, dark = sorted([luminance(one), luminance(other)], reverse=True)
    return (light + 0.05) / (dark + 0.05)
