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
    "fos.activeFields fos.modalSample fos.getSampleSrc fop.registerComponent fop.PluginComponentType React.createElement " +
    "recoil.useRecoilValueLoadable";
  const offered = { foo, fos, fop: window.__fop__, React: window.React, recoil: window.recoil };
  const missing = () =>
    NEEDED.split(" ").filter((path) => !path.split(".").reduce((part, name) => part && part[name], offered));

  // -------------------------------------------------------------------------------------------------------------------
  // The review, as Python describes it
  // -------------------------------------------------------------------------------------------------------------------

  /* reviewer; verdicts: the decisions of this stage; decided: samples that this reviewer has decided, with the decision if
   * it was made on this page (the App's own data may lack it); progress: a sentence; latest: the reviewer's last decisions,
   * the latest first; guide: question, meanings and reasons, or null. Until this is loaded all keys are the App's. */
  let review = null;

  const RESTART = "If the review was ended, start it again and open the address that it prints; then press the key again.";

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
        body: JSON.stringify(asked),
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
    review.progress = done.progress;
    review.latest = done.latest;
    for (const id of done.ids) review.decided.set(id, asked.verdict === "undo" ? "" : asked.verdict);
    for (const id of done.waiting) review.decided.delete(id);
    drawBar();
    say(done.message, done.ids.length ? "done" : "note");
    return done;
  }

  /* Load the review. The server shows one dataset, and the page is opened at its address. */
  async function learn() {
    const dataset = decodeURIComponent(window.location.pathname.split("/")[2]);
    try {
      const answer = await ask("/operators/execute", { dataset_name: dataset, operator_uri: `${PLUGIN}/about`, params: {} });
      review = answer.verdicts ? { ...answer, decided: new Map(answer.decided.map((id) => [id, ""])) } : null;
    } catch (error) {
      say(error.message, "wrong");
    }
    if (review) drawBar();
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

  /* Append an element with these properties; `style` is the text of its style. */
  function element(parent, tag, properties) {
    const made = Object.assign(document.createElement(tag), properties);
    if (parent) parent.appendChild(made);
    return made;
  }

  const Z = 2147483000;
  const FONT = "font:13px/1.5 system-ui,sans-serif;color:#f2f2f2;";
  const DARK = "background:#16161a;border-radius:8px;box-shadow:0 2px 10px rgba(0,0,0,.5);";
  const box = element(document.body, "div", {
    id: "curation-review",
    style:
      `${FONT}position:fixed;left:0;right:0;bottom:0;z-index:${Z};` +
      "pointer-events:none;display:flex;flex-direction:column;align-items:center;gap:6px;",
  });
  const line = element(box, "div", { id: "curation-review-message", role: "status", style: `${DARK}padding:4px 12px;display:none;` });
  const bar = element(box, "div", {
    id: "curation-review-bar",
    style: `${DARK}border-radius:0;width:100%;box-sizing:border-box;padding:5px 12px;display:none;flex-direction:column;gap:3px;pointer-events:auto;`,
  });
  /* The page ends above the strip, so that the strip covers no photo. Only the checkbox of a photo ticks it: the App's own
   * area for that covers very wide photos. A review changes no annotations, so there is no Annotate mode. Both arrows are
   * below the photo, not on the evidence. A narrow window has no sidebars, and the evidence is below the image. */
  element(document.head, "style", {
    textContent: `
    #root > * { max-height: calc(100vh - var(--curation-review, 0px)); }
    [data-cy="modal"] { padding-bottom: var(--curation-review, 0px); box-sizing: border-box; }
    [data-cy="modal-content"] { height: calc(100% - 70px) !important; }
    .curation-line { scrollbar-width: none; }
    .curation-line > * { flex-shrink: 0; }
    [data-cy="modal"] :has(> [data-cy="annotate"]) { display: none; }
    [class*="_lookerTags_"] { max-height: max(34%, 26px); overflow: hidden; }
    [class*="_lookerThumbnailSelector_"] { pointer-events: none; }
    [class*="_lookerThumbnailSelector_"] label { pointer-events: auto; }
    [data-cy="modal"] :has(> [data-cy^="nav-"]) { top: auto !important; bottom: 12px !important; }
    [data-cy="modal"] :has(> [data-cy="nav-right-button"]) { left: 62px !important; right: auto !important; }
    :is(#curation-review, #curation-review-help) kbd {
      font: 600 12px/1 ui-monospace, monospace; padding: 1px 6px; border-radius: 4px; margin-right: 5px;
      border: 1px solid #aaa; border-bottom-width: 3px;
    }
    @media (max-width: 700px) {
      [data-cy="modal"] :has(> [data-cy^="nav-"]) { bottom: calc(40% + 12px) !important; }
      [data-cy="sidebar"] { display: none !important; }
      [data-cy="dataset-page"] { max-width: 100vw; }
      .split-view-view:has(> * [data-cy^="panel-content-"]) { left: 0 !important; width: 100% !important; height: 60% !important; }
      .split-view-view:has(> * [data-cy="panel-content-review_evidence"]) { top: 60% !important; height: 40% !important; }
      .curation-line, .curation-line > span { flex-wrap: nowrap !important; }
      .curation-line { justify-content: start !important; overflow-x: auto; }
    }`,
  });
  new ResizeObserver(() => {
    document.documentElement.style.setProperty("--curation-review", `${bar.offsetHeight}px`);
  }).observe(bar);
  const ROW = "display:flex;gap:12px;flex-wrap:wrap;justify-content:center;";
  const asked = element(bar, "div", { style: "font-weight:600;text-align:center;" });
  const verdictKeys = element(bar, "div", { style: ROW });
  const reasons = element(bar, "div", { className: "curation-line", style: ROW });
  const reasonKeys = element(reasons, "span", { style: `${ROW}flex-shrink:0;` });
  const reason = element(reasons, "input", {
    id: "curation-review-reason",
    placeholder: "reason of the next decision",
    style: "font:inherit;color:inherit;background:transparent;border:0;border-bottom:1px solid #777;width:16em;",
  });
  // A single line keeps the height of the strip, and the place of the image.
  const past = element(bar, "div", {
    id: "curation-review-latest",
    className: "curation-line",
    style: `${ROW}gap:6px;font-size:12px;color:#c8c8d0;flex-wrap:nowrap;justify-content:safe center;overflow-x:auto;`,
  });
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
  const help = element(document.body, "div", {
    id: "curation-review-help",
    style:
      `${FONT}${DARK}position:fixed;inset:0;margin:auto;z-index:${Z + 1};padding:18px 26px;display:none;overflow-y:auto;` +
      "width:min(560px,94vw);height:fit-content;max-height:94vh;box-sizing:border-box;",
  });

  const key = (parent, letter, colour) => element(parent, "kbd", { textContent: letter, style: colour ? `border-color:${colour};` : "" });

  /* The keys of this stage with their words, meanings and colours: a candidate cannot be kept, an override has no far. */
  function keysHere() {
    const offered = Object.entries(keys()).filter(([, verdict]) => review.verdicts.includes(verdict));
    return [
      ...offered.map(([letter, verdict]) => [letter, verdict, meaningOf(verdict), COLOURS[verdict]]),
      ["x", "skip", "on to the next image; nothing is recorded, and this one comes again"],
      ["z", "undo", "takes back your last decision; the log keeps both"],
      ["?", "help", "this list; any key closes it"],
    ];
  }

  function drawBar() {
    bar.style.display = "flex";
    asked.textContent = (review.guide && review.guide.question) || "";
    verdictKeys.replaceChildren();
    for (const [letter, word, meaning, colour] of keysHere()) button(verdictKeys, letter, word, colour).title = meaning;
    reasonKeys.replaceChildren();
    reasonsHere().forEach((text, place) => button(reasonKeys, String(place + 1), text));
    past.replaceChildren();
    element(past, "span", { style: "white-space:nowrap;", textContent: `${review.reviewer} · ${review.progress}` });
    for (const one of review.latest) {
      const link = element(past, "a", {
        style: `cursor:pointer;white-space:nowrap;border-bottom:2px solid ${COLOURS[one.verdict]};`,
        textContent: `${one.image.slice(-8)} ${one.verdict}`,
        title: `${one.image}: ${one.verdict}${one.reason ? ` (${one.reason})` : ""}; a click shows it again`,
      });
      link.dataset.image = one.image;
      link.addEventListener("click", () => queue((ctx) => showAgain(ctx, one.id)));
    }
  }

  /* A key that can be clicked: the click does what the key does. */
  function button(parent, letter, word, colour) {
    const one = element(parent, "span", { role: "button", ariaLabel: `${letter} ${word}`, style: "white-space:nowrap;cursor:pointer;" });
    key(one, letter, colour);
    one.append(word);
    one.addEventListener("click", () => press(letter));
    return one;
  }

  let fading;
  function say(text, kind) {
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
    element(help, "div", { style: "font-weight:600;font-size:15px;margin-bottom:8px;", textContent: "Keys of the review" });
    for (const [letter, text, colour] of [
      ...keysHere().map(([letter, word, meaning, colour]) => [letter, `${word}: ${meaning}`, colour]),
      ...reasonsHere().map((text, place) => [String(place + 1), `the reason of the next decision: ${text}`]),
    ]) {
      const row = element(help, "div", { style: "margin:3px 0;" });
      key(row, letter, colour);
      row.append(text);
    }
    element(help, "div", {
      style: "margin-top:10px;color:#c8c8d0;",
      textContent:
        "In the grid a key judges the images that are ticked. In the enlarged view it judges the image shown and goes on to " +
        "the next one that you have not decided; after an image that you decide again its neighbour follows. A click in the " +
        "strip does what the key does; a click on one of your last decisions shows that image again.",
    });
  }

  // -------------------------------------------------------------------------------------------------------------------
  // The next image, loaded while the reviewer looks at this one
  // -------------------------------------------------------------------------------------------------------------------

  const PATIENCE = 5000;
  const plainFetch = window.fetch;
  const FRESH = 30000; // Milliseconds after which an answer may be out of date.
  let ahead = null; // The pending answer for the next image, with the text of the App's own query for it.
  let lastQuery = null; // The App's last query for an image.

  const isAhead = (query) => ahead && ahead.query === query && ahead.until > performance.now();

  /* Answer the App's query for an image from the answer that was loaded ahead, if there is one. */
  window.fetch = function (address, options) {
    const query = options && options.body;
    // The App sends the enlarged image to a session in Python, which a review does not have.
    if (typeof query === "string" && query.includes("mutation setSampleMutation(")) {
      return Promise.resolve(Response.json({ data: { setSample: true } }));
    }
    if (typeof query !== "string" || !query.includes("mainSampleQuery(")) return plainFetch.apply(this, arguments);
    lastQuery = { address, options };
    if (!isAhead(query)) return plainFetch.apply(this, arguments);
    const { answer } = ahead;
    ahead = null;
    return answer.then((one) => (one.ok ? one : Promise.reject(one))).catch(() => plainFetch(address, options));
  };

  /* Load an image with the query that the App will use, and its photo. */
  function lookAhead(id) {
    if (!lastQuery || !id) return;
    const asked = JSON.parse(lastQuery.options.body);
    asked.variables.filter.id = id;
    const query = JSON.stringify(asked);
    if (isAhead(query)) return;
    const { signal, ...options } = lastQuery.options;
    const answer = plainFetch(lastQuery.address, { ...options, body: query });
    ahead = { query, answer, until: performance.now() + FRESH };
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
      .catch(() => (ahead = null));
  }

  // -------------------------------------------------------------------------------------------------------------------
  // The next image, shown at once over the App's own view, which needs a fifth of a second
  // -------------------------------------------------------------------------------------------------------------------

  const BOXES = { known: "#d55e00", unknown: "#56b4e9", other: "#999999" };
  let coming = null; // The next image, ready to be shown: its id, sample and photo.
  let facing = null; // The image shown over the App's own view until the App shows it.
  let redrawEvidence = () => {};
  const face = element(null, "div", { id: "curation-review-next" });

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
    const paper = element(null, "div", { style: `position:absolute;left:${(width - wide) / 2}px;top:${(height - high) / 2}px;` });
    photo.style.cssText = `display:block;width:${wide}px;height:${high}px;`;
    paper.append(photo);
    for (const [field, colour] of Object.entries(BOXES)) {
      for (const one of (active.includes(field) && sample[field] && sample[field].detections) || []) {
        const [x, y, w, h] = one.bounding_box;
        const place = `left:${x * wide - 2}px;top:${y * high - 2}px;width:${w * wide + 4}px;height:${h * high + 4}px;`;
        const drawn = element(paper, "div", { style: `position:absolute;${place}box-sizing:border-box;border:3px solid ${colour};` });
        const text = "font:bold 14px/27px Palanquin,serif;color:#fff;padding:0 7px;white-space:nowrap;";
        element(drawn, "span", { textContent: one.label, style: `position:absolute;left:-3px;bottom:100%;background:${colour};${text}` });
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

  /* Reload the grid at its scroll position. With its store marked as stale the App queries the server again: judged images
   * would stay in the grid without their decision. */
  function reload(ctx) {
    fos.getCurrentEnvironment().commitUpdate((store) => store.invalidateStore());
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

  /* What the reviewer types in or chooses from. A ticked checkbox of a tile has the focus too, and does not count. */
  const BUTTONS = ["checkbox", "radio", "button", "submit", "range", "color"].map((type) => `[type="${type}"]`);
  const TYPED =
    `input:not(${BUTTONS}), textarea, select, [contenteditable]:not([contenteditable="false"]), ` +
    '[role="listbox"], [role="menu"], [role="combobox"]';
  const isTyping = () => Boolean(document.activeElement && document.activeElement.closest(TYPED));
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
    if (!review || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (isTyping() || isAsked()) return;
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
  element(document.head, "style", {
    textContent: `
    #curation-review-evidence {
      font: 14px/1.45 system-ui, sans-serif; color: var(--fo-palette-text-primary, #f2f2f2);
      padding: 10px 16px 60px; height: 100%; overflow-y: auto; box-sizing: border-box;
    }
    #curation-review-evidence .muted { color: var(--fo-palette-text-secondary, #a8a8b3); font-size: 12px; }
    #curation-review-evidence .heading { text-transform: uppercase; letter-spacing: .05em; margin: 16px 0 4px; }
    #curation-review-evidence .title { font-size: 15px; font-weight: 600; }
    #curation-review-evidence .detail { margin-top: 6px; overflow-wrap: anywhere; }
    #curation-review-evidence .pair { display: flex; flex-wrap: wrap; column-gap: 28px; }
    #curation-review-evidence .chip { color: #111; font-weight: 600; border-radius: 4px; padding: 2px 8px; }
    #curation-review-evidence .box { display: inline-block; width: 11px; height: 11px; margin-right: 7px; border: 3px solid; }
    #curation-review-evidence table { width: 100%; border-collapse: collapse; }
    #curation-review-evidence th { white-space: nowrap; }
    #curation-review-evidence td { border-top: 1px solid var(--fo-palette-divider, #44464f); }
    #curation-review-evidence :is(td, th) { padding: 5px 8px 5px 0; vertical-align: top; text-align: left; font-weight: 400; }
    #curation-review-evidence :is(td, th):nth-child(n + 3) { text-align: right; white-space: nowrap; }
    #curation-review-evidence img { display: block; max-width: 100%; max-height: 220px; border-radius: 4px; margin-bottom: 4px; }`,
  });

  const h = (tag, name, ...children) => window.React.createElement(tag, { className: name }, ...children);
  const coloured = (name, style, text) => window.React.createElement("span", { className: name, style }, text);
  const heading = (text) => h("div", "muted heading", text);
  const chip = (text, colour) => coloured("chip", { background: colour || "#555" }, text);

  /* The names of boxes with how many there are: "person 2, chair". */
  function named(boxes) {
    const counts = new Map();
    for (const one of boxes) counts.set(one.label, (counts.get(one.label) || 0) + 1);
    return Array.from(counts, ([label, count]) => (count > 1 ? `${label} ${count}` : label)).join(", ");
  }

  function verdictOf(sample) {
    const colour = COLOURS[sample.verdict] || "#cc79a7";
    const lines = (sample.verdicts || []).map((one) => h("div", "", one));
    if (sample.verdict) return h("div", "", chip(sample.verdict, colour), ...lines);
    // The App's data may be older than the decision.
    const id = sample._id || sample.id;
    const mine = review.latest.find((one) => one.id === id);
    const now = review.decided.get(id) || (mine && mine.verdict);
    return now ? h("div", "", chip(now, COLOURS[now]), " by you") : h("div", "muted", "none yet");
  }

  function proposalOf(sample) {
    const word = (sample.proposal || "").replace("?", "");
    if (!word) return h("div", "muted", "nothing is proposed for this image");
    return h("div", "", chip(sample.proposal, COLOURS[word]), ` ${sample.reason || ""} `, h("span", "muted", `rank ${sample.rank}`));
  }

  function evidenceTable(rows) {
    const row = (tag, cells) => h("tr", "", ...cells.map((cell) => h(tag, tag === "th" ? "muted" : "", cell || "–")));
    const detail = (one) => h("div", "", h("div", "", one.detail), h("div", "muted", one.why));
    const body = rows.map((one) => row("td", [detail(one), one.id_class, one.score, one.threshold]));
    return h("table", "", h("thead", "", row("th", ["evidence", "ID class", "score", "threshold"])), h("tbody", "", ...body));
  }

  function boxesOf(sample) {
    const lines = Object.entries(BOXES)
      .map(([field, colour]) => [field, colour, (sample[field] && sample[field].detections) || []])
      .filter(([, , boxes]) => boxes.length)
      .map(([field, colour, boxes]) => h("div", "", coloured("box", { borderColor: colour }), `${field}: ${named(boxes)}`));
    if (lines.length) return h("div", "", heading("boxes"), ...lines);
    return h("div", "", heading("annotated, without a box to show"), (sample.classes || []).join(", ") || "nothing");
  }

  function nearestOf(sample) {
    if (!sample.nearest) return null;
    const src = sample.nearest_path && fos.getSampleSrc(sample.nearest_path);
    const missing = h("div", "muted", "its photo is missing (--photos id=DIR)");
    const photo = src ? window.React.createElement("img", { src, alt: sample.nearest }) : missing;
    return h("div", "", heading("nearest ID image"), photo, h("div", "", sample.nearest));
  }

  /* The evidence panel. It uses the data of the enlarged view, without a request, and has no field that takes the keys. */
  function Evidence() {
    const loaded = window.recoil.useRecoilValueLoadable(fos.modalSample);
    const before = window.React.useRef(null);
    redrawEvidence = window.React.useReducer((times) => times + 1, 0)[1];
    if (loaded.state === "hasValue" && loaded.contents) before.current = loaded.contents.sample;
    const sample = facing ? facing.sample : before.current;
    if (!sample) return h("div", "muted", "…");
    const [details, rows] = [sample.details || [], sample.evidence_rows || []];
    const isPair = details.length > 0;
    return window.React.createElement(
      "div",
      { id: "curation-review-evidence", "data-image": sample.image_id },
      h("div", "title", sample.image_id),
      h("div", "muted", `${sample.part} · batch ${sample.batch}`),
      ...details.map((text) => h("div", "detail", text)),
      h(
        "div",
        "pair",
        isPair ? null : h("div", "", heading("proposed, not decided"), proposalOf(sample)),
        h("div", "", heading("decision"), verdictOf(sample))
      ),
      rows.length ? heading("why it is proposed") : null,
      rows.length ? evidenceTable(rows) : null,
      nearestOf(sample),
      isPair ? null : boxesOf(sample)
    );
  }

  /* Offer the panel, and put it beside the image, once: the App would make it a tab behind the image. The reviewer may move
   * it later. The App reads this layout when it opens its enlarged view. */
  function offerEvidence() {
    offered.fop.registerComponent({
      name: EVIDENCE,
      label: "Evidence",
      component: Evidence,
      type: offered.fop.PluginComponentType.Panel,
      activator: ({ schema }) => Boolean(schema && schema.evidence_rows),
      panelOptions: { surfaces: "modal" },
    });
    if (window.localStorage.getItem(EVIDENCE) === "beside") return;
    const alone = (name, pinned) => ({
      id: `${name} alone`,
      type: "panel-container",
      activeChild: name,
      children: [{ id: name, type: name, pinned, children: [] }],
    });
    const children = [alone("fo-sample-modal-plugin", true), alone(EVIDENCE, false)];
    const layout = { id: "root", type: "panel-container", layout: "horizontal", sizes: [0.66, 0.34], children };
    window.localStorage.setItem("fo-sample-modal-plugins", JSON.stringify(layout));
    window.localStorage.setItem(EVIDENCE, "beside");
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
  learn();
  // The grid is updated when the enlarged view closes, not at each decision.
  let enlarged = false;
  setInterval(() => {
    const now = isEnlarged();
    if (now && !enlarged && review) queue(async (ctx) => (await imageShown(ctx)) && listed(ctx));
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
    enlarged = now;
  }, 200);
})();
