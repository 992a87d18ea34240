"use strict";
// Steps through the episodes in #replay-data. All words and catches come from Python; here they are only shown.
(() => {
  const find = (id) => document.getElementById(id);
  const replays = JSON.parse(find("replay-data").textContent);
  const viewer = find("viewer"), board = find("viewer-board"), history = find("viewer-history");
  const slider = find("viewer-slider"), chooser = find("viewer-episode"), decisions = find("viewer-decisions");
  const seatRows = find("viewer-seats").tBodies[0], playButton = viewer.querySelector('[data-go="play"]');
  const CELL = 100, SECONDS = 0.55, SYMBOL = 1.3, LAYERS = ["floor", "walls", "trails", "bursts", "things", "players", "gains"];
  let episode = replays[0], index = 0, timer = null, layers = {}, players = [];

  function html(parent, tag, text = "", className = "") {
    const element = parent.appendChild(document.createElement(tag));
    element.textContent = text;
    if (className) element.className = className;
    return element;
  }

  function svg(parent, tag, attributes = {}) {
    const element = parent.appendChild(document.createElementNS(board.namespaceURI, tag));
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  }

  function symbol(parent, shape, x, y, size, title) {
    const half = (size * SYMBOL) / 2;
    const use = svg(parent, "use", { href: "#shape-" + shape, x: x - half, y: y - half, width: 2 * half, height: 2 * half });
    if (title) svg(use, "title").textContent = title;
  }

  const centre = (row, column) => [(column + 0.5) * CELL, (row + 0.5) * CELL];
  const kindOf = (plane) => episode.planes[plane].kind;
  const key = (row, column) => row + "," + column;

  function gather(cells, wanted) {
    // What is on each cell, of the planes of one kind: {"row,column": [plane, ...]}.
    const found = new Map();
    for (const [row, column, plane] of cells) {
      if (kindOf(plane) !== wanted) continue;
      const here = key(row, column);
      found.set(here, [...(found.get(here) || []), plane]);
    }
    return found;
  }

  const seatOf = (plane) => episode.planes.slice(0, plane).filter((each) => each.kind === "walker").length;

  function whereabouts(frame) {
    const places = new Map();
    for (const [row, column, plane] of frame.cells) if (kindOf(plane) === "walker") places.set(seatOf(plane), [row, column]);
    return places;
  }

  function slots(count, besideThings) {
    // Where the players of one cell go, in cells from its centre, and their radius: below the things, or all over it.
    const rows = Math.max(1, besideThings ? Math.ceil(count / 4) : Math.round(Math.sqrt(count)));
    let down = 0.97, middle = 0, largest = 0.33, overlap = 1;
    if (besideThings) [down, middle, largest, overlap] = rows === 1 ? [0.46, 0.26, 0.23, 1.15] : [0.58, 0.2, 0.2, 1.15];
    const across = 0.97, columns = Math.max(1, Math.ceil(count / rows));
    const radius = Math.min(largest, (overlap * across) / (2 * columns), down / (2 * rows));
    const columnGap = Math.min(2.1 * radius, (across - 2 * radius) / Math.max(1, columns - 1));
    const rowGap = Math.min(2.1 * radius, (down - 2 * radius) / Math.max(1, rows - 1));
    const places = Array.from({ length: count }, (_, place) => {
      const row = Math.floor(place / columns), column = place % columns;
      const inRow = Math.min(columns, count - row * columns);
      return [(column - (inRow - 1) / 2) * columnGap, middle + (row - (rows - 1) / 2) * rowGap];
    });
    return [places, radius];
  }

  function drawThings(row, column, planes, crowd) {
    let [size, up] = crowd === 0 ? [0.92, 0] : crowd <= 4 ? [0.66, 0.2] : [0.46, 0.28];
    size = Math.min(size, 1 / Math.max(1, planes.length));
    planes.forEach((plane, place) => {
      const [x, y] = centre(row, column), right = (place - (planes.length - 1) / 2) * size;
      symbol(layers.things, episode.planes[plane].shape, x + right * CELL, y - up * CELL, size * CELL, episode.planes[plane].noun);
    });
  }

  function placePlayers(row, column, seats, besideThings, gone) {
    const [places, radius] = slots(seats.length, besideThings), [x, y] = centre(row, column);
    seats.forEach((seat, place) => {
      const [right, down] = places[place], player = players[seat];
      player.style.display = "";
      player.classList.toggle("gone", gone.has(seat));
      player.style.transform = `translate(${x + right * CELL}px, ${y + down * CELL}px) scale(${radius})`;
    });
  }

  function drawTrails(before, after) {
    for (const [seat, [row, column]] of after) {
      const [oldRow, oldColumn] = before.get(seat) || [row, column];
      if (oldRow === row && oldColumn === column) continue;
      const [x1, y1] = centre(oldRow, oldColumn), [x2, y2] = centre(row, column);
      svg(layers.trails, "line", { class: "trail", x1, y1, x2, y2, stroke: episode.seats[seat].colour });
    }
  }

  function drawGain(event, taken) {
    // Towards a neighbouring cell without players or things.
    const around = [[-1, 0, 0, -0.71], [1, 0, 0, 0.7], [0, 1, 0.85, 0], [0, -1, -0.85, 0]];
    const isFree = ([down, right]) => {
      const row = event.row + down, column = event.column + right;
      return row >= 0 && column >= 0 && row < episode.height && column < episode.width && !taken.has(key(row, column));
    };
    const [down, right, dx, dy] = around.find(isFree) || around[event.row > 0 ? 0 : 1];
    taken.add(key(event.row + down, event.column + right));
    const [x, y] = centre(event.row, event.column), width = 16 + 13 * event.gain.length;
    const place = { x: x + dx * CELL, y: y + dy * CELL }, pill = svg(layers.gains, "g", { class: "gain" });
    svg(pill, "rect", { x: place.x - width / 2, y: place.y - 16, width, height: 32, rx: 12 });
    svg(pill, "text", place).textContent = event.gain;
  }

  function drawBoard(frame, previous) {
    for (const name of ["trails", "bursts", "things", "gains"]) layers[name].replaceChildren();
    for (const player of players) player.style.display = "none";
    const things = gather(frame.cells, "set"), places = whereabouts(frame), crowds = new Map(), gone = new Set();
    const join = (here, seat) => crowds.set(here, [...(crowds.get(here) || []), seat].sort((a, b) => a - b));
    for (const [seat, [row, column]] of places) join(key(row, column), seat);
    for (const event of frame.catches) {
      const here = key(event.row, event.column);
      symbol(layers.bursts, "burst", ...centre(event.row, event.column), CELL, event.words);
      things.set(here, [...(things.get(here) || []), event.plane]);
      for (const seat of event.seats) {
        if (places.has(seat) || gone.has(seat)) continue;
        gone.add(seat);
        join(here, seat);
      }
    }
    const taken = new Set([...things.keys(), ...crowds.keys()]);
    for (const here of taken) {
      const [row, column] = here.split(",").map(Number), seats = crowds.get(here) || [];
      drawThings(row, column, things.get(here) || [], seats.length);
      placePlayers(row, column, seats, things.has(here), gone);
    }
    if (previous) drawTrails(whereabouts(previous), places);
    for (const event of frame.catches) drawGain(event, taken);
  }

  function fillSeats(frame) {
    frame.did.forEach((did, seat) => {
      const row = seatRows.rows[seat], gained = frame.rewards[seat];
      row.className = (gained ? "rewarded " : "") + (frame.left[seat] && !gained ? "left" : "");
      row.cells[1].textContent = did;
      row.cells[2].textContent = frame.reward_words[seat];
      row.cells[2].className = "number " + (gained > 0 ? "up" : "down");
      row.cells[3].textContent = frame.return_words[seat];
    });
  }

  function decisionTable(title, heads, figures = []) {
    html(decisions, "h4", title);
    const table = html(decisions, "table", "", "plain"), head = html(html(table, "thead"), "tr");
    for (const name of heads) html(head, "th", name);
    for (const name of figures) html(head, "th", name, "number");
    return html(table, "tbody");
  }

  function share(row, value) {
    const cell = html(row, "td", "", "share");
    html(cell, "span", "", "bar").style.width = `calc((100% - 3.2em) * ${value})`;
    html(cell, "span", value.toFixed(2), "figure");
  }

  function chip(parent, seat) {
    html(parent, "span", seat + 1, "chip").style.backgroundColor = episode.seats[seat].colour;
  }

  function showDecisions() {
    decisions.hidden = !episode.decisions;
    decisions.replaceChildren();
    if (!episode.decisions) return;
    const { seat, goals, plans, frames } = episode.decisions, decision = frames[index], name = episode.seats[seat].name;
    if (!decision) return void html(decisions, "p", `${name} has left the game.`, "muted");
    if (goals.length) {
      const body = decisionTable(`Beliefs of ${name} about the goals of co-players`, ["", ...goals]);
      for (const belief of decision.beliefs) {
        const row = html(body, "tr");
        chip(html(row, "th"), belief.seat);
        belief.shares.forEach((value) => share(row, value));
      }
    }
    const body = decisionTable(
      plans ? `Planned actions of ${name}` : `Policy of ${name}`,
      ["action", "policy"],
      plans ? ["visits", "value"] : [],
    );
    for (const action of decision.actions) {
      const row = html(body, "tr", "", action.taken ? "taken" : "");
      html(row, "th", action.name);
      share(row, action.share);
      if (plans) for (const words of [action.visits, action.value]) html(row, "td", words, "number");
    }
  }

  function markHistory() {
    [...history.querySelectorAll("tbody tr")].forEach((row, place) => {
      row.className = place + 1 === index ? "now" : place + 1 > index ? "later" : "";
      if (place + 1 === index) history.scrollTop = row.offsetTop - history.clientHeight / 2;
    });
  }

  function show(next) {
    index = Math.max(0, Math.min(next, episode.frames.length - 1));
    const frame = episode.frames[index];
    slider.value = index;
    slider.setAttribute("aria-valuetext", frame.headline);
    find("viewer-headline").textContent = frame.headline;
    find("viewer-news").textContent = frame.catches.map((event) => event.words).join("; ");
    fillSeats(frame);
    if (episode.planes.length) drawBoard(frame, episode.frames[index - 1]);
    else markHistory();
    showDecisions();
    if (index === episode.frames.length - 1) pause();
  }

  function pause() {
    clearInterval(timer);
    timer = null;
    playButton.textContent = "Play";
  }

  function play() {
    if (timer !== null) return pause();
    if (index === episode.frames.length - 1) show(0);
    if (episode.frames.length === 1) return undefined;
    timer = setInterval(() => show(index + 1), 1000 * SECONDS);
    playButton.textContent = "Pause";
    return undefined;
  }

  function buildBoard() {
    board.replaceChildren();
    board.setAttribute("viewBox", `0 0 ${episode.width * CELL} ${episode.height * CELL}`);
    layers = Object.fromEntries(LAYERS.map((name) => [name, svg(board, "g", { class: name })]));
    for (let row = 0; row < episode.height; row++)
      for (let column = (row + 1) % 2; column < episode.width; column += 2)
        svg(layers.floor, "rect", { class: "floor-square", x: column * CELL, y: row * CELL, width: CELL, height: CELL });
    for (const [row, column] of episode.fixed) {
      const wall = svg(layers.walls, "use", { href: "#shape-wall", x: column * CELL, y: row * CELL, width: CELL, height: CELL });
      svg(wall, "title").textContent = "wall";
    }
    players = episode.seats.map((seat, number) => {
      const player = svg(layers.players, "g", { class: "player" });
      player.style.color = seat.colour;
      svg(player, "title").textContent = `${seat.name}, ${seat.policy}`;
      svg(player, "circle", { r: 93, fill: seat.colour });
      const label = svg(player, "text");
      label.textContent = number + 1;
      if (number >= 9) label.style.fontSize = "90px";
      return player;
    });
  }

  function buildLegend() {
    const legend = find("viewer-legend");
    legend.replaceChildren();
    const entry = (shape, words) => {
      const item = html(legend, "li"), picture = svg(item, "svg", { viewBox: "0 0 100 100", "aria-hidden": "true" });
      if (shape === "wall") svg(picture, "use", { href: "#shape-wall", x: 10, y: 10, width: 80, height: 80 });
      else symbol(picture, shape, 50, 50, shape === "burst" ? 78 : 98);
      html(item, "span", words);
    };
    for (const plane of episode.planes) if (plane.kind === "set") entry(plane.shape, plane.noun);
    if (episode.fixed.length) entry("wall", "wall");
    if (episode.planes.some((plane) => plane.kind === "set")) entry("burst", "catch");
  }

  function buildHistory() {
    history.replaceChildren();
    const table = html(history, "table"), head = html(html(table, "thead"), "tr"), body = html(table, "tbody");
    html(head, "th", "round");
    for (const seat of episode.seats) html(head, "th", seat.name).style.borderBottomColor = seat.colour;
    for (const frame of episode.frames.slice(1)) {
      const row = html(body, "tr");
      html(row, "td", frame.time);
      frame.did.forEach((did, seat) => html(row, "td", frame.reward_words[seat] ? `${did} (${frame.reward_words[seat]})` : did));
    }
  }

  function buildSeats() {
    seatRows.replaceChildren();
    episode.seats.forEach((seat, number) => {
      const row = html(seatRows, "tr"), head = html(row, "th");
      head.scope = "row";
      const name = html(head, "span", "", "name");
      chip(name, number);
      name.append(seat.name);
      if (seat.policy) html(head, "small", seat.policy);
      for (const name of ["", "number", "number"]) html(row, "td", "", name);
    });
  }

  function open(number) {
    pause();
    episode = replays[number];
    const hasBoard = episode.planes.length > 0;
    board.toggleAttribute("hidden", !hasBoard);
    history.hidden = hasBoard;
    slider.max = episode.frames.length - 1;
    buildSeats();
    buildLegend();
    if (hasBoard) buildBoard();
    else buildHistory();
    show(0);
  }

  const go = {
    first: () => show(0),
    back: () => show(index - 1),
    play,
    forward: () => show(index + 1),
    last: () => show(episode.frames.length - 1),
  };

  function press(name) {
    if (name !== "play") pause();
    go[name]();
  }

  function onKey(event) {
    // Only while the viewer is on the screen, and only if the focused element does not use the key itself.
    const name = { ArrowLeft: "back", ArrowRight: "forward", " ": "play" }[event.key];
    if (!name || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const focus = event.target.closest("select, input, button, a, summary");
    if (focus && (name === "play" ? focus !== slider : focus.matches("select, input"))) return;
    const { top, bottom } = viewer.getBoundingClientRect();
    if (bottom < 0 || top > window.innerHeight) return;
    event.preventDefault();
    press(name);
  }

  replays.forEach((each, number) => (html(chooser, "option", each.title).value = number));
  chooser.addEventListener("change", () => open(Number(chooser.value)));
  slider.addEventListener("input", () => { pause(); show(Number(slider.value)); });
  for (const button of viewer.querySelectorAll("[data-go]")) button.addEventListener("click", () => press(button.dataset.go));
  document.addEventListener("keydown", onKey);
  open(0);
})();
