// Drives a page of `hopplus share` as a person would, in headless Chromium, or plays the same episodes in node.
//
//   node drive.mjs compare PAGE RECORDED           compare the page with episodes that Python played
//   node drive.mjs browser PAGE OUT EPISODES       play with keys, save with the button; OUT is the folder
//   node drive.mjs node PAGE OUT EPISODES          the same players without a browser
//   node drive.mjs time PAGE SLOWDOWN              milliseconds of a decision
//   node drive.mjs show PAGE OUT                   screenshots, wide and 390 pixels wide
//
// Prints one line of JSON. CHROMIUM names the browser.
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const KINDS = ["nearest_stag", "nearest_hare"];
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

async function inBrowser(file, use) {
  const { default: puppeteer } = await import("puppeteer-core");
  const profile = mkdtempSync(join(tmpdir(), "page-"));
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    userDataDir: profile,
    args: FLAGS,
    protocolTimeout: 3_600_000,
  });
  const requests = [];
  const errors = [];
  try {
    const page = await browser.newPage();
    page.on("request", (request) => requests.push(request.url()));
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("console", (message) => errors.push(message.text()));
    await page.goto(`file://${resolve(file)}`);
    const result = await use(page, browser);
    const network = requests.filter((url) => !/^(file|data|blob):/.test(url)).length;
    return { ...result, requests: network, errors };
  } finally {
    await browser.close();
    rmSync(profile, { recursive: true, force: true });
  }
}

/** The page's functions and its data, without a browser. */
function inNode(file) {
  const html = readFileSync(file, "utf8");
  const part = (id) => html.split(`id="${id}">`)[1].split("</script>")[0];
  const script = join(mkdtempSync(join(tmpdir(), "page-")), "page.js");
  writeFileSync(script, html.split("<script>").pop().split("</script>")[0]);
  createRequire(import.meta.url)(script);
  const { hopplus } = globalThis;
  return { hopplus, data: JSON.parse(part("data")), weights: hopplus.decodeWeights(part("weights")) };
}

async function compare(file, recorded) {
  const text = readFileSync(recorded, "utf8");
  return inBrowser(file, async (page) => {
    const found = { states: 0, episodes: 0, episodes_equal: 0, sampled: 0, sampled_unequal: 0, probabilities: 0, beliefs: 0, first_difference: "" };
    const episodes = JSON.parse(text);
    for (let start = 0; start < episodes.length; start += 50) {
      const one = await page.evaluate((part) => hopplus.compare(hopplus.data, hopplus.weights, JSON.parse(part)), JSON.stringify(episodes.slice(start, start + 50)));
      for (const name of ["states", "episodes", "episodes_equal", "sampled", "sampled_unequal"]) found[name] += one[name];
      for (const name of ["probabilities", "beliefs"]) found[name] = Math.max(found[name], one.largest_difference[name]);
      found.first_difference ||= one.first_difference;
    }
    const { probabilities, beliefs, ...rest } = found;
    return { ...rest, largest_difference: { probabilities, beliefs } };
  });
}

/** Episodes with real keys and clicks: a script in the place of the person, scripts in the other seats. */
async function playInBrowser(file, out, count) {
  return inBrowser(file, async (page, browser) => {
    const session = await browser.target().createCDPSession();
    await session.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: resolve(out) });
    await page.evaluate(() => (hopplus.random = new hopplus.Random(1)));
    const seats = await page.evaluate(() => hopplus.data.game.spec.num_agents);
    for (let episode = 0; episode < count; episode++) {
      const kinds = await page.evaluate((kinds, seats) => Array.from({ length: seats }, () => kinds[hopplus.random.below(kinds.length)]), KINDS, seats);
      for (let seat = 1; seat < seats; seat++) await page.select(`#seat-${seat}`, kinds[seat]);
      await page.evaluate(() => document.activeElement.blur());
      await page.keyboard.press("n");
      for (;;) {
        const action = await page.evaluate(act, kinds[0]);
        if (action === null) break;
        if (action < 0) await page.keyboard.press("Enter");
        else await page.keyboard.press(String(action + 1));
      }
    }
    await page.click("#save");
    await new Promise((done) => setTimeout(done, 2000));
    renameSync(join(out, "episodes.json"), join(out, "browser.json"));
    return { episodes: count };
  });
}

/** The person's action in the page: null at the end, -1 if the person has left. */
function act(kind) {
  const session = hopplus.page.session;
  if (session.isOver) return null;
  if (session.now.over[0]) return -1;
  const script = hopplus.makeScript(session.game.spec, kind);
  const view = session.game.observe(session.now.state)[0];
  const { probabilities } = script.act(view, session.now.legal[0], script.init());
  return hopplus.sampleAction(probabilities, hopplus.random.uniform());
}

function playInNode(file, out, count) {
  const { hopplus, data, weights } = inNode(file);
  const random = new hopplus.Random(2);
  const episodes = [];
  for (let episode = 0; episode < count; episode++) {
    const kinds = data.lineup.map(() => KINDS[random.below(KINDS.length)]);
    const session = new hopplus.Session(data, weights, ["person", ...kinds.slice(1)], random);
    session.start();
    hopplus.page = { session };
    hopplus.random = random;
    while (!session.isOver) {
      const action = act(kinds[0]);
      session.play(session.choose(action < 0 ? new Map() : new Map([[0, action]])));
    }
    episodes.push(session.saved());
  }
  writeFileSync(join(out, "node.json"), hopplus.fileOf(data, episodes));
  return { episodes: count };
}

async function time(file, slowdown) {
  return inBrowser(file, async (page) => {
    await page.emulateCPUThrottling(slowdown);
    const session = await page.createCDPSession();
    await session.send("Performance.enable");
    const processor = async () => (await session.send("Performance.getMetrics")).metrics.find((one) => one.name === "ThreadTime").value;
    const before = await processor();
    const times = await page.evaluate(() => {
      const { data, weights, Session, Random } = hopplus;
      const name = data.agents[0].name;
      const seats = data.lineup.map((_, seat) => (data.agents[0].sets === 1 ? name : `${name}:${seat + 1}`));
      const session = new Session(data, weights, seats, new Random(3));
      const found = [];
      for (let episode = 0; episode < 4; episode++) {
        session.start();
        while (!session.isOver) {
          const { state, legal, before, over } = session.now;
          const views = session.game.observe(state);
          session.players.forEach((player, seat) => {
            if (over[seat]) return;
            const start = performance.now();
            player.act(views[seat], legal[seat], before[seat]);
            found.push(performance.now() - start);
          });
          session.play(session.choose(new Map()));
        }
      }
      return found.sort((one, other) => one - other);
    });
    const share = (part) => Number(times[Math.floor(part * (times.length - 1))].toFixed(2));
    // The time that the page's thread had the processor, rules included: other programs on the machine do not count.
    const mean_processor = Number(((1000 * ((await processor()) - before)) / times.length).toFixed(2));
    return { slowdown, decisions: times.length, mean_processor, median: share(0.5), ninety_fifth: share(0.95), largest: share(1) };
  });
}

/** Screenshots; whether the page fits, what a tap does, and what a screen reader is told in each language. */
async function show(file, out) {
  return inBrowser(file, async (page) => {
    const found = { fits: {}, tapped: {}, small: {}, unnamed: {}, untranslated: [], board: {} };
    for (const [name, width, language] of [["desktop", 1280, "en"], ["phone", 390, "zh"]]) {
      await page.setViewport({ width, height: 844, hasTouch: name === "phone", isMobile: name === "phone" });
      await page.reload();
      if ((await page.evaluate(() => document.documentElement.lang)) !== language) await page.click("#language");
      await page.select("#seat-0", "person");
      const press = (button) => (name === "phone" ? button.tap() : button.click());
      for (let step = 0; step < 3; step++) {
        const button = await page.$(".action:not(:disabled)");
        if (button) await press(button);
      }
      await press(await page.$("#show-predicted"));
      await press(await page.$("summary"));
      found.tapped[name] = await page.evaluate(() => hopplus.page.session.moments.length - 1);
      found.fits[name] = await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
      found.small[name] = await page.$$eval("button, select, summary", (all) => all.filter((one) => one.checkVisibility() && one.offsetHeight < 32).map((one) => one.id || one.textContent));
      const labels = await labelled(page);
      found.unnamed[name] = labels.filter(([, label]) => !label).map(([role]) => role);
      found.board[name] = labels.find(([role]) => role === "image")?.[1] ?? "";
      if (language === "zh") found.untranslated = await untranslated(page, labels);
      await page.screenshot({ path: join(out, `${name}.png`), fullPage: true });
    }
    return found;
  });
}

/** Role and name of everything that a person can use, and of the board. */
async function labelled(page) {
  const roles = ["button", "combobox", "checkbox", "slider", "image"];
  const found = [];
  const visit = (node) => {
    if (roles.includes(node.role)) found.push([node.role, node.name ?? ""]);
    (node.children ?? []).forEach(visit);
  };
  visit(await page.accessibility.snapshot());
  return found;
}

/** English words among Chinese ones, other than names and keys. */
async function untranslated(page, labels) {
  const names = await page.evaluate(() => [hopplus.data.game.name, ...hopplus.data.agents.map((one) => one.name), "hopplus", "Switch to English", "English"]);
  const texts = [...labels.map(([, label]) => label), await page.evaluate(() => document.body.innerText)];
  return texts.flatMap((text) => names.reduce((left, name) => left.replaceAll(name, ""), text).match(/[A-Za-z]{2,}/g) ?? []);
}

const [, , command, file, ...rest] = process.argv;
const commands = {
  compare: () => compare(file, rest[0]),
  browser: () => playInBrowser(file, rest[0], Number(rest[1])),
  node: () => playInNode(file, rest[0], Number(rest[1])),
  time: () => time(file, Number(rest[0])),
  show: () => show(file, rest[0]),
};
console.log(JSON.stringify(await commands[command]()));
