/* Keys, counts and messages of a review in FiftyOne's App.
 *
 * One plain script that the App inserts: no build step, no module, nothing fetched from elsewhere. The server of the review
 * records each decision (in the log, synced; then in the database); this script shows the answer. It uses names of the App
 * that are not documented: `missing` checks them at the start.
 */
(function () {
  "use strict";

  const PLUGIN = "@curation/review";
  const foo = window.__foo__;
  const fos = window.__fos__;

  // -------------------------------------------------------------------------------------------------------------------
  // The names of the App that this script uses
  // -------------------------------------------------------------------------------------------------------------------

  const NEEDED =
    "foo.Operator foo.OperatorConfig foo.registerOperator foo.executeOperator fos.nullableModalSampleId fos.selectedSamples " +
    "fos.refresher fos.getCurrentEnvironment fos.gridSortBy fos.modalNavigation.set fos.useSetExpandedSample fos.useClearModal " +
    "fos.activeFields fos.modalSample fos.getSampleSrc fop.registerComponent fop.PluginComponentType fosp.useSpaces " +
    "fosp.useSpaceNodes fosp.Layout React.createElement recoil.useRecoilValueLoadable";
  const offered = { foo, fos, fop: window.__fop__, fosp: window.__fosp__, React: window.React, recoil: window.recoil };
  const missing = () =>
    NEEDED.split(" ").filter((path) => !path.split(".").reduce((part, name) => part && part[name], offered));

  // -------------------------------------------------------------------------------------------------------------------
  // The review of the dataset on the page, as Python describes it
  // -------------------------------------------------------------------------------------------------------------------

  /* dataset: its name; reviewer; verdicts: the decisions of this stage; decided: ids of samples that this reviewer has
   * decided; progress: a sentence; latest: the reviewer's last decisions, the latest first; guide: question, meanings and
   * reasons, or null. */
  let review = null;

  const RESTART = "If the review was ended, start it again and open the address that it prints; then press the key again.";

  function datasetShown() {
    const found = window.location.pathname.match(/\/datasets\/([^/?]+)/);
    return found ? decodeURIComponent(found[1]) : "";
  }

  const ANSWER = 10000; // Milliseconds to wait for an answer: longer than the server waits for its database.

  /* Wait for a promise for a limited time. */
  function within(milliseconds, promise, message) {
    const end = new Promise((_, reject) => setTimeout(() => reject(new Error(message)), milliseconds));
    return Promise.race([promise, end]);
  }

  /* Send a request to the server. Every failure is an Error whose text can be shown. An answer takes a millisecond an image. */
  async function ask(address, asked) {
    const patience = ANSWER + ((asked.ids && asked.ids.length) || 0);
    let answer;
    try {
      const reply = await fetch(address, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ dataset_name: datasetShown(), ...asked }),
        signal: AbortSignal.timeout(patience),
      });
      if (!reply.ok) throw new Error(`the server answered ${reply.status}`);
      answer = await reply.json();
    } catch (error) {
      const why = error.name === "TimeoutError" ? `no answer within ${patience / 1000} seconds` : error.message;
      throw new Error(`Not known whether it was recorded: ${why}. ${RESTART}`);
    }
    const result = answer.result || answer;
    if (answer.error || result.error) throw new Error(result.message || answer.error_message || String(answer.error));
    return result;
  }

  /* Record a decision, or take the last one back. The answer comes once it is in the log and in the database. */
  async function judge(asked) {
    const done = await ask("/review/judge", asked);
    if (review && review.verdicts) {
      review.progress = done.progress || review.progress;
      review.latest = done.latest || review.latest;
      for (const id of done.ids || []) review.decided.add(id);
      for (const id of done.waiting || []) review.decided.delete(id);
      drawBar();
    }
    say(done.message, done.ids.length ? "done" : "note");
    return done;
  }

  /* Load the review that the page shows. Another dataset has none, and all keys are the App's there. */
  async function learn() {
    const dataset = datasetShown();
    let answer = {};
    try {
      answer = dataset ? await ask("/operators/execute", { operator_uri: `${PLUGIN}/about`, params: {} }) : {};
    } catch (error) {
      say(error.message, "wrong");
    }
    if (dataset !== datasetShown()) return;
    review = answer.verdicts ? { dataset, ...answer, decided: new Set(answer.decided) } : { dataset, verdicts: null };
    drawBar();
  }

  // -------------------------------------------------------------------------------------------------------------------
  // The strip: question, keys, reasons, reviewer, progress and last decisions; the line of the last message; the help
  // -------------------------------------------------------------------------------------------------------------------

  const IMAGE_KEYS = { k: "keep", r: "remove", n: "near", f: "far", u: "unsure" };
  const PAIR_KEYS = { s: "same", d: "different", u: "unsure" };
  const keys = () => (review.verdicts.includes("same") ? PAIR_KEYS : IMAGE_KEYS);
  const MEANING = {
    keep: "stays where it is",
    remove: "shows an in-distribution class, or is unfit otherwise",
    near: "is near out of distribution",
    far: "is far out of distribution",
    same: "both are one photo, also cut, scaled, recoloured or mirrored",
    different: "two photos, however alike",
    unsure: "cannot decide",
  };
  const meaningOf = (verdict) => (review.guide && review.guide[verdict]) || MEANING[verdict];
  const reasonsHere = () => (review.guide && review.guide.reasons) || [];
  // Okabe and Ito's palette, as in the App.
  const COLOURS = { keep: "#009e73", remove: "#d55e00", near: "#e69f00", far: "#0072b2", same: "#d55e00", different: "#009e73", unsure: "#999999" };

  function element(parent, tag, style, text) {
    const made = document.createElement(tag);
    made.style.cssText = style;
    if (text !== undefined) made.textContent = text;
    if (parent) parent.appendChild(made);
    return made;
  }

  const Z = 2147483000;
  const FONT = "font:13px/1.5 system-ui,sans-serif;color:#f2f2f2;";
  const DARK = "background:#16161a;border-radius:8px;box-shadow:0 2px 10px rgba(0,0,0,.5);";
  const box = element(
    null,
    "div",
    `${FONT}position:fixed;left:0;right:0;bottom:0;z-index:${Z};` +
      "pointer-events:none;display:flex;flex-direction:column;align-items:center;gap:6px;"
  );
  box.id = "curation-review";
  const line = element(box, "div", `${DARK}padding:4px 12px;display:none;`);
  line.id = "curation-review-message";
  line.setAttribute("role", "status");
  const bar = element(
    box,
    "div",
    `${DARK}border-radius:0;width:100%;box-sizing:border-box;padding:5px 12px;display:none;flex-direction:column;gap:3px;pointer-events:auto;`
  );
  bar.id = "curation-review-bar";
  /* The page ends above the strip, so that the strip covers no photo. Only the checkbox of a photo ticks it: the App's own
   * area for that covers very wide photos. Both arrows are below the photo, not on the evidence. A narrow window has no
   * sidebars, and the evidence is below the image. */
  element(document.head, "style", "").textContent = `
    #root > * { max-height: calc(100vh - var(--curation-review, 0px)); }
    [data-cy="modal"] { padding-bottom: var(--curation-review, 0px); box-sizing: border-box; }
    [data-cy="modal-content"] { height: calc(100% - 70px) !important; }
    .curation-line { scrollbar-width: none; }
    .curation-line > * { flex-shrink: 0; }
    [class*="_lookerTags_"] { max-height: max(34%, 26px); overflow: hidden; }
    [class*="_lookerThumbnailSelector_"] { pointer-events: none; }
    [class*="_lookerThumbnailSelector_"] label { pointer-events: auto; }
    [data-cy="modal"] :has(> [data-cy^="nav-"]) { top: auto !important; bottom: 12px !important; }
    [data-cy="modal"] :has(> [data-cy="nav-right-button"]) { left: 62px !important; right: auto !important; }
    @media (max-width: 700px) {
      [data-cy="modal"] :has(> [data-cy^="nav-"]) { bottom: calc(40% + 12px) !important; }
      [data-cy="sidebar"] { display: none !important; }
      [data-cy="dataset-page"] { max-width: 100vw; }
      .split-view-view:has(> * [data-cy^="panel-content-"]) { left: 0 !important; width: 100% !important; height: 60% !important; }
      .split-view-view:has(> * [data-cy="panel-content-review_evidence"]) { top: 60% !important; height: 40% !important; }
      .curation-line, .curation-line > span { flex-wrap: nowrap !important; }
      .curation-line { justify-content: start !important; overflow-x: auto; }
    }`;
  new ResizeObserver(() => {
    document.documentElement.style.setProperty("--curation-review", `${bar.offsetHeight}px`);
  }).observe(bar);
  const ROW = "display:flex;gap:12px;flex-wrap:wrap;justify-content:center;";
  const asked = element(bar, "div", "font-weight:600;text-align:center;");
  const verdictKeys = element(bar, "div", ROW);
  const reasons = element(bar, "div", ROW);
  const reasonKeys = element(reasons, "span", `${ROW}flex-shrink:0;`);
  const reason = element(reasons, "input", "font:inherit;color:inherit;background:transparent;border:0;border-bottom:1px solid #777;width:16em;");
  reason.placeholder = "reason of the next decision";
  reason.id = "curation-review-reason";
  // A single line keeps the height of the strip, and the place of the image.
  const past = element(bar, "div", `${ROW}gap:6px;font-size:12px;color:#c8c8d0;flex-wrap:nowrap;justify-content:safe center;overflow-x:auto;`);
  past.id = "curation-review-latest";
  reasons.className = past.className = "curation-line";
  // A click leaves the focus where it was, so that the next key arrives; the App gets no click on the strip.
  for (const kind of ["mousedown", "pointerdown", "click"]) {
    bar.addEventListener(kind, (event) => {
      event.stopPropagation();
      if (kind === "mousedown" && event.target !== reason) event.preventDefault();
    });
  }
  reason.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter" || event.key === "Escape") reason.blur();
  });
  const help = element(
    null,
    "div",
    `${FONT}${DARK}position:fixed;inset:0;margin:auto;z-index:${Z + 1};padding:18px 26px;display:none;overflow-y:auto;` +
      "width:min(560px,94vw);height:fit-content;max-height:94vh;box-sizing:border-box;"
  );
  help.id = "curation-review-help";

  function key(parent, letter, colour) {
    element(
      parent,
      "kbd",
      "font:600 12px/1 ui-monospace,monospace;padding:1px 6px;border-radius:4px;margin-right:5px;" +
        `border:1px solid ${colour || "#aaa"};border-bottom-width:3px;`,
      letter
    );
  }

  /* Keys of this stage: a candidate cannot be kept, an override has no far. */
  function keysHere() {
    return Object.entries(keys()).filter(([, verdict]) => review.verdicts.includes(verdict));
  }

  function drawBar() {
    if (!box.isConnected) document.body.append(box, help);
    const shown = review && review.verdicts && review.dataset === datasetShown();
    bar.style.display = shown ? "flex" : "none";
    if (!shown) return;
    asked.textContent = (review.guide && review.guide.question) || "";
    verdictKeys.replaceChildren();
    for (const [letter, verdict] of keysHere()) button(verdictKeys, letter, verdict, COLOURS[verdict]).title = meaningOf(verdict);
    for (const [letter, word] of [["x", "skip"], ["z", "undo"], ["?", "help"]]) button(verdictKeys, letter, word);
    reasonKeys.replaceChildren();
    reasonsHere().forEach((text, place) => button(reasonKeys, String(place + 1), text));
    past.replaceChildren();
    element(past, "span", "white-space:nowrap;", `${review.reviewer} · ${review.progress}`);
    for (const one of review.latest || []) {
      const link = element(past, "a", `cursor:pointer;white-space:nowrap;border-bottom:2px solid ${COLOURS[one.verdict]};`);
      link.textContent = `${one.image.slice(-8)} ${one.verdict}`;
      link.title = `${one.image}: ${one.verdict}${one.reason ? ` (${one.reason})` : ""}; a click shows it again`;
      link.dataset.image = one.image;
      link.addEventListener("click", () => queue((ctx) => showAgain(ctx, one.id)));
    }
  }

  /* A key that can be clicked: the click does what the key does. */
  function button(parent, letter, word, colour) {
    const one = element(parent, "span", "white-space:nowrap;cursor:pointer;");
    one.setAttribute("role", "button");
    one.setAttribute("aria-label", `${letter} ${word}`);
    key(one, letter, colour);
    one.append(word);
    one.addEventListener("click", () => press(letter));
    return one;
  }

  let fading;
  function say(text, kind) {
    if (!box.isConnected) document.body.append(box, help);
    line.textContent = text;
    line.dataset.kind = kind || "done";
    line.style.display = "block";
    line.style.borderLeft = `4px solid ${kind === "wrong" ? "#d55e00" : kind === "note" ? "#56b4e9" : "#009e73"}`;
    clearTimeout(fading);
    // An error stays until the next message.
    if (kind !== "wrong") fading = setTimeout(() => (line.style.display = "none"), 4000);
  }

  function toggleHelp(open) {
    help.replaceChildren();
    help.style.display = open ? "block" : "none";
    if (!open) return;
    element(help, "div", "font-weight:600;font-size:15px;margin-bottom:8px;", "Keys of the review");
    for (const [letter, text, colour] of [
      ...keysHere().map(([letter, verdict]) => [letter, `${verdict}: ${meaningOf(verdict)}`, COLOURS[verdict]]),
      ...reasonsHere().map((text, place) => [String(place + 1), `the reason of the next decision: ${text}`]),
      ["x", "skip: on to the next image; nothing is recorded, and this one comes again"],
      ["z", "undo: takes back your last decision; the log keeps both"],
      ["?", "this help; any key closes it"],
    ]) {
      const row = element(help, "div", "margin:3px 0;");
      key(row, letter, colour);
      row.append(text);
    }
    element(
      help,
      "div",
      "margin-top:10px;color:#c8c8d0;",
      "In the grid a key judges the images that are ticked. In the enlarged view it judges the image shown and goes on to " +
        "the next one that you have not decided; after an image that you decide again its neighbour follows. A click in the " +
        "strip does what the key does; a click on one of your last decisions shows that image again."
    );
  }

  // -------------------------------------------------------------------------------------------------------------------
  // The next image, loaded while the reviewer looks at this one
  // -------------------------------------------------------------------------------------------------------------------

  const PATIENCE = 5000;
  const plainFetch = window.fetch;
  const FRESH = 30000; // Milliseconds after which an answer may be out of date.
  const ahead = new Map(); // The pending answer for the next image, by the text of the App's own query.
  let lastQuery = null; // The App's last query for an image.

  /* Answer the App's query for an image from the answer that was loaded ahead, if there is one. */
  window.fetch = function (address, options) {
    const query = options && options.body;
    // The App sends the enlarged image to a session in Python, which a review does not have.
    if (typeof query === "string" && query.includes("mutation setSampleMutation(")) {
      return Promise.resolve(Response.json({ data: { setSample: true } }));
    }
    if (typeof query !== "string" || !query.includes("mainSampleQuery(")) return plainFetch.apply(this, arguments);
    lastQuery = { address, options };
    const kept = ahead.get(query);
    ahead.delete(query);
    if (!kept || kept.until < performance.now()) return plainFetch.apply(this, arguments);
    return kept.answer.then((answer) => (answer.ok ? answer : plainFetch(address, options))).catch(() => plainFetch(address, options));
  };

  /* Load an image with the query that the App will use, and its photo. */
  function lookAhead(id) {
    if (!lastQuery || !id) return;
    const asked = JSON.parse(lastQuery.options.body);
    if (!asked.variables || !asked.variables.filter || asked.variables.filter.group) return;
    asked.variables.filter.id = id;
    const query = JSON.stringify(asked);
    const kept = ahead.get(query);
    if (kept && kept.until > performance.now()) return;
    ahead.clear();
    const { signal, ...options } = lastQuery.options;
    const answer = plainFetch(lastQuery.address, { ...options, body: query });
    ahead.set(query, { answer, until: performance.now() + FRESH });
    answer
      .then((one) => one.clone().json())
      .then((answer) => {
        const { sample, urls } = answer.data.sample;
        const photo = new Image();
        for (const { field, url } of urls) (field === "filepath" ? photo : new Image()).src = fos.getSampleSrc(url);
        photo.decode().then(
          () => (coming = { id, sample, photo }),
          () => (coming = null)
        );
      })
      .catch(() => ahead.delete(query));
  }

  // -------------------------------------------------------------------------------------------------------------------
  // The next image, shown at once over the App's own view, which needs a fifth of a second
  // -------------------------------------------------------------------------------------------------------------------

  const BOXES = { known: "#d55e00", unknown: "#56b4e9", other: "#999999" };
  let coming = null; // The next image, ready to be shown: its id, sample and photo.
  let facing = null; // The image shown over the App's own view until the App shows it.
  let redrawEvidence = () => {};
  const face = element(null, "div", "");
  face.id = "curation-review-next";

  /* Show the image that was loaded ahead, with its boxes, where the App will show it: the next key judges it. */
  async function showAtOnce(ctx, id) {
    const active = await within(PATIENCE, ctx.state.snapshot.getPromise(fos.activeFields({ modal: true })), "the App is busy");
    const place = document.querySelector('[data-cy="modal-looker-container"]');
    // The App does not tell two images of the same file apart.
    if (!place || !coming || coming.id !== id || coming.sample.filepath === lastDrawn) return uncover();
    const shown = (facing = coming);
    const { sample, photo } = shown;
    const { left, top, width, height } = place.getBoundingClientRect();
    const scale = Math.min(width / photo.naturalWidth, height / photo.naturalHeight);
    const [wide, high] = [photo.naturalWidth * scale, photo.naturalHeight * scale];
    face.style.cssText =
      `position:fixed;left:${left}px;top:${top}px;width:${width}px;height:${height}px;overflow:hidden;` +
      `background:${getComputedStyle(place).backgroundColor};pointer-events:none;z-index:${Z - 1};`;
    const paper = element(null, "div", `position:absolute;left:${(width - wide) / 2}px;top:${(height - high) / 2}px;`);
    photo.style.cssText = `display:block;width:${wide}px;height:${high}px;`;
    paper.append(photo);
    for (const [field, colour] of Object.entries(BOXES)) {
      for (const one of (active.includes(field) && sample[field] && sample[field].detections) || []) {
        const [x, y, w, h] = one.bounding_box;
        const place = `left:${x * wide - 2}px;top:${y * high - 2}px;width:${w * wide + 4}px;height:${h * high + 4}px;`;
        const drawn = element(paper, "div", `position:absolute;${place}box-sizing:border-box;border:3px solid ${colour};`);
        const text = "font:bold 14px/27px Palanquin,serif;color:#fff;padding:0 7px;white-space:nowrap;";
        element(drawn, "span", `position:absolute;left:-3px;bottom:100%;background:${colour};${text}`, one.label);
      }
    }
    face.replaceChildren(paper);
    face.dataset.image = sample.image_id;
    document.body.append(face);
    redrawEvidence();
    setTimeout(() => facing === shown && uncover(), PATIENCE);
    await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)));
  }

  function uncover() {
    face.remove();
    if (!facing) return;
    facing = null;
    redrawEvidence();
  }

  const drawn = new Set(); // Canvases of images that were enlarged lately.
  let lastDrawn = ""; // The file of the last of them.

  /* Remove the image once the App has drawn it, or the reviewer clicks or scrolls. */
  document.addEventListener("canvas-loaded", ({ target, detail }) => {
    if (!target.closest('[data-cy="modal"]')) return;
    moving = false;
    drawn.add(target);
    lastDrawn = detail.sampleFilepath;
    if (facing && detail.sampleFilepath === facing.sample.filepath) uncover();
  });
  for (const turned of ["pointerdown", "wheel"]) window.addEventListener(turned, () => (leaving = false, uncover()), true);

  // -------------------------------------------------------------------------------------------------------------------
  // Judging: one step after the other
  // -------------------------------------------------------------------------------------------------------------------

  let last = Promise.resolve();
  let waiting = 0;
  const jobs = new Map();
  let number = 0;

  /* Run some work with the App's state and hooks, which only an operator gets. If the App has lost its server, the work is
   * given up before it begins, and never done late. */
  function withApp(work) {
    return new Promise((resolve, reject) => {
      const job = String(++number);
      const lost = setTimeout(() => {
        jobs.delete(job);
        reject(new Error(`Nothing was judged: the App does not answer. ${RESTART}`));
      }, PATIENCE);
      jobs.set(job, (ctx) => {
        clearTimeout(lost);
        return Promise.resolve(work(ctx)).then(resolve, reject);
      });
      foo.executeOperator(`${PLUGIN}/press`, { job });
    });
  }

  class Press extends foo.Operator {
    get config() {
      return new foo.OperatorConfig({ name: "press", label: "Review: a key was pressed", unlisted: true });
    }
    useHooks() {
      return { expand: fos.useSetExpandedSample(), close: fos.useClearModal() };
    }
    async execute(ctx) {
      hooks = ctx.hooks;
      const job = jobs.get(ctx.params.job);
      jobs.delete(ctx.params.job);
      if (job) await job(ctx);
    }
  }

  /* Work with the App after all work before it. */
  function queue(work) {
    waiting += 1;
    last = last
      .then(() => withApp(work))
      .catch((error) => say(error.message, "wrong"))
      .finally(() => (waiting -= 1));
  }

  const imageShown = (ctx) => ctx.state.snapshot.getPromise(fos.nullableModalSampleId);

  /* Mark the App's store as stale. Otherwise the App would not query the server again, and judged images would stay in the
   * grid without their decision. */
  function callStale() {
    fos.getCurrentEnvironment().commitUpdate((store) => store.invalidateStore());
  }

  /* Reload the grid at its scroll position. */
  function reload(ctx) {
    callStale();
    ctx.state.set(fos.refresher, (count) => count + 1);
  }

  /* The images of the grid in their order, and the position of the enlarged one.
   *
   * The App's own navigation skips images at the end of a page of the grid. So arrows and keys follow this list, which is
   * loaded each time the enlarged view opens. */
  class List {
    constructor(ids, shown) {
      this.ids = ids;
      this.at = ids.indexOf(shown);
    }
    /* Position of the next image that this reviewer has not decided, or of the neighbour. */
    after(neighbour) {
      let to = this.at + 1;
      const passed = (id) => review.decided.has(id) || skipped.has(id);
      while (!neighbour && to < this.ids.length && passed(this.ids[to])) to += 1;
      return to;
    }
    go(place) {
      [moving, movedAt, leaving] = [true, performance.now(), false];
      this.at = Math.min(Math.max(place, 0), this.ids.length - 1);
      return { id: this.ids[this.at], hasNext: this.at < this.ids.length - 1, hasPrevious: this.at > 0 };
    }
    navigation() {
      return {
        next: async (count = 1) => this.go(this.at + count),
        previous: async (count = 1) => this.go(this.at - count),
        peek: async (count) => (this.ids[this.at + count] ? { id: this.ids[this.at + count] } : null),
      };
    }
  }

  let list = null;
  const skipped = new Set(); // Samples skipped since the enlarged view opened; they come again.
  const SETTLED = 2000; // Milliseconds after a step during which the App may ignore keys.
  let moving = false; // Whether the App has yet to draw the next image.
  let movedAt = -SETTLED;
  let leaving = false; // Whether Esc was pressed during a step, which the App may finish after it closed the view.
  let left = 0; // How often the enlarged view was left: steps that began earlier must not open it again.
  let hooks = null; // The App's hooks, from the last operator.

  const isStepping = () => waiting || moving || performance.now() - movedAt < SETTLED;

  /* Leave the enlarged view. The App handles Esc itself (a zoom, a list of options), but ignores keys until the image is
   * drawn, and a step in progress would open the view again. */
  function leave(event) {
    left += 1;
    uncover();
    if (!hooks || !isStepping()) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    leaving = true;
    hooks.close();
  }

  async function listed(ctx, shown) {
    if (list) return;
    const sort = await ctx.state.snapshot.getPromise(fos.gridSortBy);
    const unknown = `Nothing was judged: the list of images is not known. ${RESTART}`;
    const asked = new Promise((resolve) => {
      foo.executeOperator(`${PLUGIN}/in_order`, { sort }, { callback: resolve });
    });
    const answer = await within(ANSWER, asked, unknown);
    const ids = answer && answer.result && answer.result.ids;
    if (!ids) throw new Error(unknown);
    list = new List(ids, shown || (await imageShown(ctx)));
    fos.modalNavigation.set(list.navigation());
  }

  let changed = false; // Whether a decision since the enlarged view opened makes the grid out of date.
  const given = new Map(); // Decisions in the enlarged view by sample, which the App's own data may lack.

  /* The sample that a key in the enlarged view judges; undefined if the reviewer saw another one. */
  async function sampleSeen(ctx, before) {
    const id = before === left && (await imageShown(ctx));
    if (!id) return say("The enlarged view closed before this key arrived: nothing was recorded", "note");
    if (facing && facing.id !== id) {
      uncover();
      return say("Nothing was recorded: the App had not moved on to the image shown", "wrong");
    }
    await listed(ctx, id);
    return id;
  }

  async function skip(ctx, enlarged, before) {
    if (!enlarged) return say("Open an image first: skip goes on to the next one", "note");
    const id = await sampleSeen(ctx, before);
    if (!id) return;
    skipped.add(id);
    say("Skipped: nothing was recorded", "note");
    await goOn(ctx, false);
  }

  async function judgeShown(ctx, verdict, reason, before) {
    const id = await sampleSeen(ctx, before);
    if (!id) return;
    const here = list;
    const again = review.decided.has(id);
    await judge({ ids: [id], verdict, reason });
    changed = true;
    given.set(id, verdict);
    // Do not go on if the view was closed meanwhile.
    if (here === list && before === left) await goOn(ctx, again);
  }

  /* Free the canvases that are no longer on the page: the App keeps each enlarged image, several MiB. */
  function letGo() {
    for (const canvas of drawn) {
      if (canvas.isConnected) continue;
      canvas.width = canvas.height = 0;
      drawn.delete(canvas);
    }
  }

  /* Go to the next image that this reviewer has not decided, or to the neighbour of an image decided again. */
  async function goOn(ctx, again) {
    letGo();
    const here = list;
    const to = here.after(again);
    if (to < here.ids.length) {
      // If it cannot be shown at once, the App shows it later.
      const before = left;
      await showAtOnce(ctx, here.ids[to]).catch(uncover);
      if (here !== list || before !== left || !isEnlarged()) return uncover();
      await ctx.hooks.expand(here.go(to));
      if (before !== left) return ctx.hooks.close();
      return lookAhead(here.ids[here.after()]);
    }
    uncover();
    ctx.hooks.close();
    if (again) return say("That was the last image in this list", "note");
    const before = here.ids.filter((id) => !review.decided.has(id)).length;
    say(`End of the list: ${before ? `${before} in it still wait for you` : "you have decided every image in it"}`, "note");
  }

  async function judgeTicked(ctx, verdict, reason) {
    const ids = Array.from((await ctx.state.snapshot.getPromise(fos.selectedSamples)).keys());
    await judge({ ids, verdict, reason });
    ctx.state.set(fos.selectedSamples, new Map());
    reload(ctx);
  }

  async function undo(ctx, enlarged) {
    const done = await judge({ verdict: "undo" });
    for (const id of done.ids) given.delete(id);
    if (!done.ids.length) return;
    if (!enlarged || !(await imageShown(ctx))) return reload(ctx);
    changed = true;
    await listed(ctx);
    if (list) await reopen(ctx, done.ids);
  }

  /* Queue an arrow key pressed during a step: the App would handle it too early, or ignore it. */
  function walk(event, count) {
    event.preventDefault();
    event.stopImmediatePropagation();
    if (event.repeat && waiting) return;
    const before = left;
    queue(async (ctx) => {
      if (before !== left || !list || !(await imageShown(ctx))) return;
      uncover();
      await ctx.hooks.expand(list.go(list.at + count));
    });
  }

  /* Show the first of some images again. Images that were decided before the list was made are inserted at its position. */
  function reopen(ctx, ids) {
    uncover();
    const absent = ids.filter((id) => !list.ids.includes(id));
    list.ids.splice(Math.max(list.at, 0), 0, ...absent);
    return ctx.hooks.expand(list.go(list.ids.indexOf(ids[0])));
  }

  /* Show the image of one of the last decisions, in the enlarged view. */
  async function showAgain(ctx, id) {
    await listed(ctx, id);
    if (list) await reopen(ctx, [id]);
  }

  // -------------------------------------------------------------------------------------------------------------------
  // The keyboard
  // -------------------------------------------------------------------------------------------------------------------

  const isEnlarged = () => Boolean(document.querySelector('[data-cy="modal"]'));

  function isAnnotating() {
    if (!isEnlarged()) return false;
    try {
      return JSON.parse(window.localStorage.getItem(`${datasetShown()}_modalMode`)) === "annotate";
    } catch {
      return false;
    }
  }

  /* Whether the reviewer types or chooses from a list. A ticked checkbox of a tile has the focus too, and does not count. */
  function isTyping() {
    const at = document.activeElement;
    if (!at || at === document.body) return false;
    if (at.isContentEditable || at.tagName === "TEXTAREA" || at.tagName === "SELECT") return true;
    if (at.tagName === "INPUT") return !["checkbox", "radio", "button", "submit", "range", "color"].includes(at.type);
    return Boolean(at.closest('[role="listbox"],[role="menu"],[role="combobox"]'));
  }

  const isAsked = () => Boolean(document.querySelector('[data-cy^="operators-prompt"],[data-cy="operators-browser"]'));

  /* The pressed letter or digit; on layouts with other letters, that of the key's position. */
  function letterOf(event) {
    const letter = event.key.toLowerCase();
    if (/^[?1-9]$/.test(letter)) return letter;
    const digit = /^(?:Digit|Numpad)([1-9])$/.exec(event.code);
    if (digit && !event.shiftKey) return digit[1];
    if (event.shiftKey) return "";
    return /^[a-z]$/.test(letter) ? letter : /^[ -~]+$/.test(letter) ? "" : event.code.replace("Key", "").toLowerCase();
  }

  function onKey(event) {
    if (!review || !review.verdicts || review.dataset !== datasetShown()) return;
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (isTyping() || isAnnotating() || isAsked()) return;
    const helping = help.style.display !== "none";
    if (event.key === "Escape" && !helping && isEnlarged()) return leave(event);
    const count = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (count && !helping && list && isEnlarged() && isStepping()) return walk(event, count);
    const letter = letterOf(event);
    if (!helping && !isOurs(letter)) return uncover();
    // The App would use f for fullscreen, r for zoom and z for crop.
    event.preventDefault();
    event.stopImmediatePropagation();
    // A key that is held down is one decision.
    if (event.repeat) return;
    press(helping ? "?" : letter);
  }

  const isOurs = (letter) => Boolean(keys()[letter] || "xz?".includes(letter || " ") || reasonsHere()[letter - 1]);

  /* Carry out a key, or a click on it in the strip. */
  function press(letter) {
    if (letter === "?") return toggleHelp(help.style.display === "none");
    const chosen = reasonsHere()[letter - 1];
    if (chosen) return (reason.value = reason.value === chosen ? "" : chosen);
    const [enlarged, before] = [isEnlarged(), left];
    const verdict = keys()[letter];
    if (verdict && !review.verdicts.includes(verdict)) {
      return say(`${letter}: ${verdict} is not available at this stage; choose ${review.verdicts.join(", ")}`, "wrong");
    }
    if (letter === "x") return queue((ctx) => skip(ctx, enlarged, before));
    if (!verdict) return queue((ctx) => undo(ctx, enlarged));
    const why = reason.value.trim();
    reason.value = "";
    queue((ctx) => (enlarged ? judgeShown(ctx, verdict, why, before) : judgeTicked(ctx, verdict, why)));
  }

  // -------------------------------------------------------------------------------------------------------------------
  // The evidence beside the image
  // -------------------------------------------------------------------------------------------------------------------

  const EVIDENCE = "review_evidence";
  const MUTED = { color: "var(--fo-palette-text-secondary, #a8a8b3)", fontSize: 12 };

  const h = (tag, style, ...children) => window.React.createElement(tag, { style }, ...children);

  const heading = (text) =>
    h("div", { ...MUTED, textTransform: "uppercase", letterSpacing: ".05em", margin: "16px 0 4px" }, text);

  const chip = (text, colour) =>
    h("span", { background: colour || "#555", color: "#111", fontWeight: 600, borderRadius: 4, padding: "2px 8px" }, text);

  /* The names of boxes with how many there are: "person 2, chair". */
  function named(boxes) {
    const counts = new Map();
    for (const one of boxes) counts.set(one.label, (counts.get(one.label) || 0) + 1);
    return Array.from(counts, ([label, count]) => (count > 1 ? `${label} ${count}` : label)).join(", ");
  }

  function verdictOf(sample) {
    const colour = COLOURS[sample.verdict] || "#cc79a7";
    const lines = (sample.verdicts || []).map((one) => h("div", { marginTop: 2 }, one));
    if (sample.verdict) return h("div", {}, chip(sample.verdict, colour), ...lines);
    // The App's data may be older than the decision.
    const id = sample._id || sample.id;
    const mine = (review.latest || []).find((one) => one.id === id);
    const now = given.get(id) || (mine && mine.verdict);
    return now ? h("div", {}, chip(now, COLOURS[now]), " by you") : h("div", MUTED, "none yet");
  }

  function proposalOf(sample) {
    const word = (sample.proposal || "").replace("?", "");
    if (!word) return h("div", MUTED, "nothing is proposed for this image");
    return h("div", {}, chip(sample.proposal, COLOURS[word]), ` ${sample.reason || ""} `, h("span", MUTED, `rank ${sample.rank}`));
  }

  function evidenceTable(rows) {
    const cell = { padding: "5px 8px 5px 0", verticalAlign: "top", borderTop: "1px solid var(--fo-palette-divider, #44464f)" };
    const number = { ...cell, textAlign: "right", whiteSpace: "nowrap", fontVariantNumeric: "tabular-nums" };
    const head = (text, style) => h("th", { ...style, ...MUTED, fontWeight: 400, borderTop: "none", whiteSpace: "nowrap", textAlign: style.textAlign || "left" }, text);
    const body = rows.map((row) =>
      h(
        "tr",
        {},
        h("td", cell, h("div", {}, row.detail), h("div", MUTED, row.why)),
        h("td", cell, row.id_class || "–"),
        h("td", number, row.score || "–"),
        h("td", number, row.threshold || "–")
      )
    );
    const heads = [head("evidence", cell), head("ID class", cell), head("score", number), head("threshold", number)];
    return h("table", { width: "100%", borderCollapse: "collapse" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...body));
  }

  function boxesOf(sample) {
    const lines = Object.entries(BOXES)
      .map(([field, colour]) => [field, colour, (sample[field] && sample[field].detections) || []])
      .filter(([, , boxes]) => boxes.length)
      .map(([field, colour, boxes]) =>
        h(
          "div",
          { margin: "2px 0" },
          h("span", { display: "inline-block", width: 11, height: 11, marginRight: 7, border: `3px solid ${colour}` }),
          `${field}: ${named(boxes)}`
        )
      );
    if (lines.length) return h("div", {}, heading("boxes"), ...lines);
    return h("div", {}, heading("annotated, without a box to show"), (sample.classes || []).join(", ") || "nothing");
  }

  function nearestOf(sample) {
    if (!sample.nearest) return null;
    const source = sample.nearest_path && fos.getSampleSrc(sample.nearest_path);
    const photo = source
      ? window.React.createElement("img", {
          src: source,
          alt: sample.nearest,
          style: { display: "block", maxWidth: "100%", maxHeight: 220, borderRadius: 4, marginBottom: 4 },
        })
      : h("div", MUTED, "its photo is missing (--photos id=DIR)");
    return h("div", {}, heading("nearest ID image"), photo, h("div", {}, sample.nearest));
  }

  /* The evidence panel. It uses the data of the enlarged view, without a request, and has no field that takes the keys. */
  function Evidence() {
    const loaded = window.recoil.useRecoilValueLoadable(fos.modalSample);
    const before = window.React.useRef(null);
    redrawEvidence = window.React.useReducer((times) => times + 1, 0)[1];
    if (loaded.state === "hasValue" && loaded.contents) before.current = loaded.contents.sample;
    const sample = facing ? facing.sample : before.current;
    if (!sample) return h("div", { padding: 16, ...MUTED }, "…");
    const isPair = Boolean((sample.details || []).length);
    return window.React.createElement(
      "div",
      {
        id: "curation-review-evidence",
        "data-image": sample.image_id,
        style: { font: "14px/1.45 system-ui,sans-serif", color: "var(--fo-palette-text-primary, #f2f2f2)", padding: "10px 16px 60px", height: "100%", overflowY: "auto", boxSizing: "border-box" },
      },
      h("div", { fontSize: 15, fontWeight: 600 }, sample.image_id),
      h("div", MUTED, [sample.part, `batch ${sample.batch}`].join(" · ")),
      ...(sample.details || []).map((text) => h("div", { marginTop: 6, overflowWrap: "anywhere" }, text)),
      h(
        "div",
        { display: "flex", flexWrap: "wrap", columnGap: 28 },
        isPair ? null : h("div", {}, heading("proposed, not decided"), proposalOf(sample)),
        h("div", {}, heading("decision"), verdictOf(sample))
      ),
      sample.evidence_rows && sample.evidence_rows.length ? heading("why it is proposed") : null,
      sample.evidence_rows && sample.evidence_rows.length ? evidenceTable(sample.evidence_rows) : null,
      nearestOf(sample),
      isPair ? null : boxesOf(sample)
    );
  }

  /* Put the evidence beside the image, once: the App makes it a tab behind the image. The reviewer may move it later. */
  class Beside extends foo.Operator {
    get config() {
      return new foo.OperatorConfig({ name: "beside", label: "Review: evidence beside the image", unlisted: true });
    }
    useHooks() {
      const place = fos.constants.FIFTYONE_MODAL_SPACES_ID;
      return { spaces: window.__fosp__.useSpaces(place).spaces, nodes: window.__fosp__.useSpaceNodes(place) };
    }
    async execute(ctx) {
      const { spaces, nodes } = ctx.hooks;
      const node = nodes.find((one) => one.type === EVIDENCE);
      const parent = node && node.parent;
      if (!parent) return;
      if (spaces.canSplitLayout(parent)) {
        spaces.splitLayout(parent, window.__fosp__.Layout.Horizontal, node);
        spaces.setNodeSizes(parent, [0.66, 0.34]);
      } else if (!parent.parent) return;
      window.localStorage.setItem(EVIDENCE, "beside");
    }
  }

  function offerEvidence() {
    offered.fop.registerComponent({
      name: EVIDENCE,
      label: "Evidence",
      component: Evidence,
      type: offered.fop.PluginComponentType.Panel,
      activator: ({ schema }) => Boolean(schema && schema.evidence_rows),
      panelOptions: { surfaces: "modal" },
    });
    foo.registerOperator(Beside, PLUGIN);
  }

  // -------------------------------------------------------------------------------------------------------------------
  // Start
  // -------------------------------------------------------------------------------------------------------------------

  const absent = missing();
  if (absent.length) {
    say(`Nothing can be judged: this FiftyOne lacks ${absent.join(", ")}. Next: pip install 'fiftyone>=1.22,<1.23'`, "wrong");
    return;
  }
  // FiftyOne's advertisement would cover the first photos and take the first click.
  window.localStorage.setItem("fiftyone-enterprise-tooltip-seen", "true");
  foo.registerOperator(Press, PLUGIN);
  offerEvidence();
  window.addEventListener("keydown", onKey, true);
  // The page may change its dataset without a reload. The grid is updated when the enlarged view closes, not at each
  // decision.
  let enlarged = false;
  let tries = 0;
  setInterval(() => {
    const dataset = datasetShown();
    if (!review || review.dataset !== dataset) {
      review = { dataset, verdicts: null };
      learn();
    }
    const now = isEnlarged();
    if (now && !enlarged && review.verdicts) queue(async (ctx) => (await imageShown(ctx)) && listed(ctx));
    if (now && leaving) hooks.close();
    if (!now) {
      list = null;
      skipped.clear();
      moving = leaving = false;
      uncover();
      letGo();
    }
    if (list) lookAhead(list.ids[list.after()]);
    if (enlarged && !now && changed) {
      changed = false;
      queue(reload);
    }
    if (!now) tries = 0;
    // The App makes its panels some moments after it opens the view; give up after 25 attempts.
    if (now && review.verdicts && window.localStorage.getItem(EVIDENCE) !== "beside" && tries++ < 25) {
      foo.executeOperator(`${PLUGIN}/beside`, {});
    }
    enlarged = now;
  }, 200);
})();
