// Curves over steps, with findings marked and the values under the pointer.

/**
 * @typedef {object} Marker a finding on the axis of steps
 * @property {number} x
 * @property {string} number
 * @property {string} title
 * @property {string} severity
 */

/**
 * @typedef {object} LineChartOptions
 * @property {string} title
 * @property {string} [note]
 * @property {SeriesData[]} series
 * @property {Marker[]} markers
 * @property {number} lastStep
 * @property {number} height
 * @property {boolean} namesWorkers
 * @property {[number, number]} [range] of y, when it is known beforehand
 */

/**
 * @param {string} statistic
 * @returns {string}
 */
function statisticInWords(statistic) {
    const words = /** @type {Record<string, string>} */ ({ l1: "L1 norm", l2: "L2 norm", std: "standard deviation", zero: "zeros", nan: "NaN", inf: "Inf", inactive_units: "inactive units" });
    return words[statistic] ?? statistic;
}

/**
 * How a curve is called in a legend.
 * @param {SeriesData} series
 * @param {boolean} namesWorkers
 * @returns {string}
 */
function seriesLabel(series, namesWorkers) {
    const statistic = series.statistic === "value" ? "" : ` · ${statisticInWords(series.statistic)}`;
    const mode = series.mode === "train" ? "" : ` (${series.mode})`;
    return `${series.tensor}${statistic}${mode}${namesWorkers ? ` · worker ${series.worker}` : ""}`;
}

/**
 * The index of the point of `x` (ascending) nearest to `step`; -1 when there is none.
 * @param {number[]} x
 * @param {number} step
 * @returns {number}
 */
function nearestIndex(x, step) {
    let low = 0;
    let high = x.length - 1;
    while (high - low > 1) {
        const middle = (low + high) >> 1;
        if ((x[middle] ?? 0) < step) low = middle;
        else high = middle;
    }
    if (high < 0) return -1;
    return Math.abs((x[low] ?? 0) - step) <= Math.abs((x[high] ?? 0) - step) ? low : high;
}

/**
 * What a chart shows, for those who do not see it.
 * @param {LineChartOptions} options
 * @returns {string}
 */
function chartInWords(options) {
    const parts = options.series.map((series) => {
        const finite = series.y.filter((y) => typeof y === "number");
        const label = seriesLabel(series, options.namesWorkers);
        if (finite.length === 0) return `${label}: no finite value`;
        const bad = series.y.length - finite.length;
        const least = finite.reduce((a, b) => Math.min(a, b));
        const most = finite.reduce((a, b) => Math.max(a, b));
        const text = `${label}: from ${formatNumber(series.y[0])} at step ${series.x[0]} to ${formatNumber(series.y.at(-1))} at step ${series.x.at(-1)}, least ${formatNumber(least)}, most ${formatNumber(most)}`;
        return bad ? `${text}, ${bad} points not finite` : text;
    });
    return `${options.title}. ${parts.join(". ")}`;
}

/**
 * @param {HTMLElement} host emptied and filled
 * @param {LineChartOptions} options
 */
function lineChart(host, options) {
    const kTop = options.markers.length ? 26 : 10;
    const kRight = 14;
    const kBottom = 36;
    const hidden = new Set();
    const series = options.series;
    const positive = series.flatMap((s) => s.y.filter((y) => typeof y === "number" && y > 0)).map(Number);
    const finite = series.flatMap((s) => s.y.filter((y) => typeof y === "number")).map(Number);
    const most = positive.reduce((a, b) => Math.max(a, b), 0);
    const least = positive.reduce((a, b) => Math.min(a, b), Infinity);
    // Where the values span decades, a linear axis would show a flat line and one peak.
    let logarithmic = !options.range && finite.every((value) => value >= 0) && most / least > 50;

    host.replaceChildren();
    const header = element("div", "chart-header");
    const title = element("h3", "chart-title", options.title);
    title.title = options.title;
    header.append(title);
    const plot = element("div", "plot");
    const legend = element("ul", "legend");
    if (positive.length && !options.range) {
        const toggle = element("button", "toggle", "log");
        toggle.type = "button";
        toggle.title = "Logarithmic axis";
        toggle.setAttribute("aria-label", `Logarithmic axis for ${options.title}`);
        const update = () => toggle.setAttribute("aria-pressed", String(logarithmic));
        toggle.addEventListener("click", () => {
            logarithmic = !logarithmic;
            update();
            redraw();
        });
        update();
        header.append(toggle);
    }
    host.append(header);
    if (options.note) host.append(element("p", "note", options.note));
    host.append(plot, legend);

    series.forEach((one, index) => {
        const item = element("li");
        const button = element("button");
        button.type = "button";
        button.setAttribute("aria-pressed", "true");
        const key = svgElement("svg", { width: 20, height: 10, "aria-hidden": "true" });
        key.append(svgElement("line", { x1: 0, x2: 20, y1: 5, y2: 5, class: `curve bold c${index % 8}${one.mode === "train" ? "" : " dashed"}` }));
        const label = element("span", "name", seriesLabel(one, options.namesWorkers));
        label.title = label.textContent ?? "";
        button.append(key, label);
        button.addEventListener("click", () => {
            if (!hidden.delete(index)) hidden.add(index);
            button.setAttribute("aria-pressed", String(!hidden.has(index)));
            redraw();
        });
        item.append(button);
        legend.append(item);
    });
    const thinned = series.some((one) => one.recorded > one.x.length);
    if (series.some((one) => one.smooth.length))
        legend.append(element("li", "hint", `pale: ${thinned ? "extremes of neighbouring steps" : "each step"}, bold: running median`));

    const tooltip = makeTooltip(plot);
    /** @type {SVGSVGElement | undefined} */
    let svg;
    let width = 0;
    /** @type {number | undefined} */
    let cursor;

    /** @type {(step: number | undefined) => void} */
    let pointAt = () => {};

    function redraw() {
        if (width === 0) return;
        svg?.remove();
        svg = draw();
        plot.prepend(svg);
    }

    /** @returns {SVGSVGElement} */
    function draw() {
        const height = options.height;
        const visible = series.map((one, index) => ({ one, index })).filter(({ index }) => !hidden.has(index));
        const values = visible.flatMap(({ one }) => one.y.filter((y) => typeof y === "number" && (!logarithmic || y > 0))).map(Number);
        let low = values.reduce((a, b) => Math.min(a, b), Infinity);
        let high = values.reduce((a, b) => Math.max(a, b), -Infinity);
        if (!values.length) [low, high] = logarithmic ? [0.1, 1] : [0, 1];
        if (options.range) [low, high] = options.range;
        else if (logarithmic) {
            const room = high > low ? (high / low) ** 0.05 : 2;
            [low, high] = [low / room, high * room];
        } else {
            const room = high > low ? (high - low) * 0.06 : Math.abs(high) * 0.1 || 1;
            // A loss is read against zero where zero is near.
            low = low >= 0 && low < (high - low) * 0.5 ? 0 : low - room;
            high += room;
        }
        const rows = Math.max(2, Math.round((height - kTop - kBottom) / 42));
        const make = logarithmic ? logScale : linearScale;
        const y = make(low, high, height - kBottom, kTop, rows);
        const labels = y.ticks.map(formatNumber);
        const left = 14 + 7 * labels.reduce((a, b) => Math.max(a, b.length), 2);
        const lastStep = Math.max(1, options.lastStep);
        const x = linearScale(0, lastStep, left, width - kRight, Math.max(2, width / 110));
        // On a logarithmic axis zero lies on the floor.
        const clampY = (/** @type {number} */ value) => (logarithmic && value <= 0 ? height - kBottom : Math.min(height - kBottom, Math.max(kTop, y.place(value))));

        const made = svgElement("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0, "aria-label": chartInWords(options) });
        y.ticks.forEach((tick, index) => {
            const at = y.place(tick);
            made.append(svgElement("line", { x1: left, x2: width - kRight, y1: at, y2: at, class: "grid" }));
            made.append(svgElement("text", { x: left - 6, y: at + 4, class: "tick end" }, labels[index] ?? ""));
        });
        for (const tick of x.ticks.filter((value) => Number.isInteger(value))) {
            const at = x.place(tick);
            made.append(svgElement("line", { x1: at, x2: at, y1: height - kBottom, y2: height - kBottom + 4, class: "axis" }));
            made.append(svgElement("text", { x: at, y: height - kBottom + 17, class: "tick middle" }, String(tick)));
        }
        made.append(svgElement("line", { x1: left, x2: width - kRight, y1: height - kBottom, y2: height - kBottom, class: "axis" }));
        made.append(svgElement("text", { x: (left + width - kRight) / 2, y: height - 3, class: "tick middle" }, "step"));

        for (const { one, index } of visible) {
            const colour = `c${index % 8}${one.mode === "train" ? "" : " dashed"}`;
            const trace = (/** @type {(number | string | null)[]} */ list) => {
                let path = "";
                let down = false;
                list.forEach((value, i) => {
                    if (typeof value !== "number" || (logarithmic && value < 0)) {
                        down = false;
                        return;
                    }
                    path += `${down ? "L" : "M"}${x.place(one.x[i] ?? 0).toFixed(1)} ${clampY(value).toFixed(1)}`;
                    down = true;
                });
                return path;
            };
            const smooth = one.smooth.length > 0;
            made.append(svgElement("path", { d: trace(one.y), class: `curve ${smooth ? "pale" : "bold"} ${colour}` }));
            if (smooth) made.append(svgElement("path", { d: trace(one.smooth), class: `curve bold ${colour}` }));
            if (one.x.length <= 60 || one.mode !== "train")
                one.y.forEach((value, i) => {
                    if (typeof value === "number" && (!logarithmic || value >= 0))
                        made.append(svgElement("circle", { cx: x.place(one.x[i] ?? 0), cy: clampY(value), r: 2.5, class: `dot c${index % 8}` }));
                });
        }
        drawMarkers(made, x, height);
        let labelled = 0;
        for (const { one } of visible) if (drawNotFinite(made, one, x, kTop, labelled)) ++labelled;

        const hair = svgElement("line", { y1: kTop, y2: height - kBottom, class: "hair", visibility: "hidden" });
        const dots = svgElement("g");
        made.append(hair, dots);
        pointAt = (step) => {
            dots.replaceChildren();
            hair.setAttribute("visibility", step === undefined ? "hidden" : "visible");
            if (step === undefined) {
                tooltip.hide();
                return;
            }
            const at = x.place(step);
            hair.setAttribute("x1", String(at));
            hair.setAttribute("x2", String(at));
            const lines = [element("div", "tooltip-title", `step ${step}`)];
            for (const { one, index } of visible) {
                const i = nearestIndex(one.x, step);
                const value = one.y[i];
                const from = one.x[i];
                if (value === undefined || from === undefined) continue;
                // A curve that was recorded more rarely shows its nearest value, with its step.
                const line = element("div", "tooltip-line");
                line.append(element("span", `swatch c${index % 8}`), element("span", "name", seriesLabel(one, options.namesWorkers)),
                    element("strong", typeof value === "string" ? "bad" : "", formatNumber(value)));
                if (from !== step) line.append(element("span", "hint", `at ${from}`));
                lines.push(line);
                if (typeof value === "number" && (!logarithmic || value >= 0))
                    dots.append(svgElement("circle", { cx: x.place(from), cy: clampY(value), r: 4, class: `dot c${index % 8}` }));
            }
            for (const marker of options.markers.filter((m) => Math.abs(x.place(m.x) - at) < 4))
                lines.push(element("div", `tooltip-line severity ${marker.severity}`, `${marker.number} ${marker.title}`));
            tooltip.show(at, kTop, lines);
        };
        const steps = [...new Set(visible.flatMap(({ one }) => one.x))].sort((a, b) => a - b);
        const move = (/** @type {number | undefined} */ step) => {
            cursor = step;
            pointAt(step);
        };
        made.addEventListener("pointermove", (event) => {
            const box = made.getBoundingClientRect();
            const step = ((event.clientX - box.left - left) / Math.max(1, width - kRight - left)) * lastStep;
            const i = nearestIndex(steps, step);
            move(i < 0 ? undefined : steps[i]);
        });
        made.addEventListener("pointerleave", () => move(undefined));
        made.addEventListener("blur", () => move(undefined));
        made.addEventListener("keydown", (event) => {
            const jump = /** @type {Record<string, number>} */ ({ ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity })[event.key];
            if (jump === undefined || !steps.length) return;
            event.preventDefault();
            const here = cursor === undefined ? (jump > 0 ? -1 : steps.length) : nearestIndex(steps, cursor);
            move(steps[Math.min(steps.length - 1, Math.max(0, here + jump))]);
            announce(plot.querySelector(".tooltip")?.textContent ?? "");
        });
        return made;
    }

    /**
     * A line along the upper edge where values are not finite, with a cross at its beginning.
     * @param {SVGSVGElement} made
     * @param {SeriesData} one
     * @param {Scale} x
     * @param {number} top
     * @param {number} line of the label, below those of other curves
     * @returns {boolean} whether there was anything to mark
     */
    function drawNotFinite(made, one, x, top, line) {
        let any = false;
        for (let i = 0; i < one.y.length; ++i) {
            const value = one.y[i];
            if (typeof value === "number") continue;
            let end = i;
            while (end + 1 < one.y.length && typeof one.y[end + 1] === "string") ++end;
            const from = x.place(one.x[i] ?? 0);
            const to = x.place(one.x[end] ?? 0);
            made.append(svgElement("path", { d: `M${from} ${top}H${to}M${from - 4} ${top - 4}l8 8m0 -8l-8 8`, class: "not-finite" }));
            const flip = from > width - 150;
            made.append(svgElement("text", { x: flip ? from - 8 : from + 8, y: top + 14 + 14 * line, class: `tick bad${flip ? " end" : ""}` },
                `${formatNumber(value)} ${end > i ? "from" : "at"} step ${one.x[i]}${one.mode === "train" ? "" : ` (${one.mode})`}`));
            any = true;
            i = end;
        }
        return any;
    }

    /**
     * @param {SVGSVGElement} made
     * @param {Scale} x
     * @param {number} height
     */
    function drawMarkers(made, x, height) {
        let free = -Infinity;
        for (const marker of [...options.markers].sort((a, b) => a.x - b.x)) {
            const at = x.place(marker.x);
            const flag = Math.min(width - 9, Math.max(at, free));
            free = flag + 19;
            const group = svgElement("g", { class: `marker ${marker.severity}` });
            group.append(svgElement("title", {}, `Finding ${marker.number}: ${marker.title}, step ${marker.x}`));
            group.append(svgElement("path", { d: `M${flag} 16L${at} ${kTop - 2}V${height - kBottom}` }));
            group.append(svgElement("circle", { cx: flag, cy: 9, r: 8.5 }));
            group.append(svgElement("text", { x: flag, y: 13 }, marker.number));
            made.append(group);
        }
    }

    drawAtWidth(plot, (now) => {
        width = now;
        redraw();
    });
}
