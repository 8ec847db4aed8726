// Layers over steps: one row a tensor, one column a recorded step (or a few), colour for the value.

/**
 * @typedef {object} HeatRange what the colours stand for
 * @property {number} low
 * @property {number} high
 * @property {(value: number) => number} share of a value, 0 to 1; below 0: under the scale
 */

/**
 * @param {HeatData} data
 * @returns {HeatRange}
 */
function heatRange(data) {
    const values = data.values.filter((value) => value !== null).map(Number);
    if (!data.logarithmic) {
        const high = Math.max(values.reduce((a, b) => Math.max(a, b), 0), 1e-12);
        // Shares are read against the whole, unless all of them are small.
        const top = high > 0.2 && high <= 1 ? 1 : high;
        return { low: 0, high: top, share: (value) => value / top };
    }
    const sorted = values.filter((value) => value > 0).sort((a, b) => a - b);
    // Six decades to either side of the middle: one exploded step must not turn the rest into one colour.
    const middle = sorted[sorted.length >> 1] ?? 1;
    const most = Math.min(sorted.at(-1) ?? 1, middle * 1e6);
    const least = Math.max(sorted[0] ?? most / 10, middle * 1e-6);
    const low = most / least < 10 ? most / 10 : least;
    const span = Math.log(most / low);
    return { low, high: most, share: (value) => (value > 0 ? Math.max(0, Math.log(value / low) / span) : -1) };
}

/**
 * @param {HTMLElement} host emptied and filled
 * @param {ReportData} report
 * @param {Marker[]} markers
 */
function heatMap(host, report, markers) {
    host.replaceChildren();
    const controls = element("div", "heat-controls");
    const label = element("label", "", "Quantity ");
    const select = element("select");
    report.heat.forEach((data, index) => {
        const option = element("option", "", data.title);
        option.value = String(index);
        select.append(option);
    });
    label.append(select);
    const legend = element("div", "heat-legend");
    controls.append(label, legend);
    const note = element("p", "note");
    const frame = element("div", "heat-frame");
    const names = element("ol", "heat-names");
    const right = element("div", "heat-right");
    const axis = element("div", "heat-axis");
    const canvas = element("canvas", "heat-canvas");
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    right.append(canvas);
    frame.append(names, right, axis);
    host.append(controls, note, frame);
    const outer = element("div", "heat-tip-host");
    frame.before(outer);
    outer.append(frame);
    const tooltip = makeTooltip(outer);

    let data = /** @type {HeatData} */ (report.heat[0]);
    let range = heatRange(data);
    /** @type {Set<number>} */
    let bad = new Set();
    /** @type {{ row: number, column: number } | undefined} */
    let cursor;
    let rowHeight = 20;

    function chooseQuantity() {
        const chosen = report.heat[Number(select.value)];
        if (!chosen) return;
        data = chosen;
        range = heatRange(data);
        bad = new Set(data.not_finite);
        cursor = undefined;
        tooltip.hide();
        rowHeight = data.rows.length <= 30 ? 20 : 14;
        names.className = `heat-names${rowHeight === 20 ? "" : " small"}`;
        names.replaceChildren(...data.rows.map((row) => {
            const [name, type] = report.tensors[row] ?? ["", ""];
            const item = element("li", "", name.slice(name.indexOf("/") + 1));
            item.title = type ? `${name} (${type})` : name;
            return item;
        }));
        note.textContent = data.note + (data.first.some((first, i) => first !== data.last[i])
            ? " A cell spans several recorded steps and shows their largest value." : "");
        canvas.setAttribute("aria-label", `${data.title}: ${data.rows.length} tensors over ${data.first.length} columns of steps ${data.first[0]} to ${data.last.at(-1)}. ${bad.size} cells not finite. Arrow keys read the cells.`);
        drawLegend();
        draw();
    }

    function drawLegend() {
        const scale = element("canvas", "heat-scale");
        scale.width = 120;
        scale.height = 1;
        const context = scale.getContext("2d");
        for (let i = 0; context && i < 120; ++i) {
            context.fillStyle = heatColour(i / 119);
            context.fillRect(i, 0, 1, 1);
        }
        scale.setAttribute("aria-hidden", "true");
        const items = [element("span", "", `${data.values.some((value) => value !== null && value > 0 && value < range.low * 0.999) ? "≤ " : ""}${formatNumber(range.low)}`), scale,
            element("span", "", `${data.values.some((value) => value !== null && value > range.high * 1.001) ? "≥ " : ""}${formatNumber(range.high)}${data.logarithmic ? ", logarithmic" : ""}`)];
        if (data.logarithmic && data.values.some((value, index) => value === 0 && !bad.has(index))) items.push(element("span", "swatch zero"), element("span", "", "exactly 0"));
        if (data.values.some((value, index) => value === null && !bad.has(index))) items.push(element("span", "swatch none"), element("span", "", "not recorded"));
        if (bad.size) items.push(element("span", "swatch not-finite"), element("span", "", "NaN or Inf"));
        legend.replaceChildren(...items);
    }

    function draw() {
        const width = right.clientWidth;
        const columns = data.first.length;
        const rows = data.rows.length;
        if (width === 0 || columns === 0) return;
        const height = rows * rowHeight;
        // Browsers refuse canvases of more than about 32,000 pixels a side.
        const density = Math.min(window.devicePixelRatio || 1, 30000 / height);
        canvas.width = Math.max(1, Math.floor(width * density));
        canvas.height = Math.max(1, Math.floor(height * density));
        canvas.style.height = `${height}px`;
        const context = canvas.getContext("2d");
        if (!context) return;
        const style = getComputedStyle(host);
        const none = style.getPropertyValue("--heat-none");
        const zero = style.getPropertyValue("--heat-zero");
        const badColour = style.getPropertyValue("--heat-bad");
        const badMark = style.getPropertyValue("--heat-bad-mark");
        const w = canvas.width / columns;
        const h = canvas.height / rows;
        const gap = rowHeight === 20 ? Math.round(density) : 0;
        for (let row = 0; row < rows; ++row) {
            const top = Math.round(row * h);
            const bottom = Math.round((row + 1) * h) - gap;
            for (let column = 0; column < columns; ++column) {
                const index = row * columns + column;
                const value = data.values[index] ?? null;
                const from = Math.round(column * w);
                const to = Math.round((column + 1) * w);
                if (bad.has(index)) context.fillStyle = badColour;
                else if (value === null) context.fillStyle = none;
                else {
                    const share = range.share(value);
                    context.fillStyle = share < 0 ? zero : heatColour(share);
                }
                context.fillRect(from, top, to - from, bottom - top);
                if (!bad.has(index)) continue;
                // Strokes, so that the mark does not rest on its colour alone.
                context.strokeStyle = badMark;
                context.lineWidth = Math.max(1, density);
                context.beginPath();
                for (let left = from; left < to; left += Math.max(bottom - top, 1)) {
                    const right = Math.min(to, left + (bottom - top));
                    context.moveTo(left, bottom);
                    context.lineTo(right, bottom - (right - left));
                }
                context.stroke();
            }
        }
        drawAxis(width, columns);
        if (cursor) drawCursor(context, w, h, density);
    }

    /**
     * @param {CanvasRenderingContext2D} context
     * @param {number} w
     * @param {number} h
     * @param {number} density
     */
    function drawCursor(context, w, h, density) {
        if (!cursor) return;
        context.strokeStyle = getComputedStyle(host).getPropertyValue("--heat-cursor");
        context.lineWidth = 2 * density;
        context.strokeRect(cursor.column * w, cursor.row * h, Math.max(w, 3 * density), h);
    }

    /**
     * Step numbers below, findings as numbered flags among them.
     * @param {number} width
     * @param {number} columns
     */
    function drawAxis(width, columns) {
        const svg = svgElement("svg", { width, height: 40, "aria-hidden": "true" });
        const every = Math.max(1, Math.ceil(columns / Math.max(2, Math.floor(width / 70))));
        for (let column = 0; column < columns; column += every) {
            const at = ((column + 0.5) * width) / columns;
            svg.append(svgElement("line", { x1: at, x2: at, y1: 0, y2: 4, class: "axis" }));
            svg.append(svgElement("text", { x: Math.max(at, 5), y: 16, class: column === 0 ? "tick" : "tick middle" }, String(data.first[column])));
        }
        let free = -Infinity;
        for (const marker of [...markers].sort((a, b) => a.x - b.x)) {
            let column = data.first.findLastIndex((first) => first <= marker.x);
            if (column < 0) column = 0;
            const at = ((column + 0.5) * width) / columns;
            const flag = Math.min(width - 9, Math.max(9, at, free));
            free = flag + 19;
            const group = svgElement("g", { class: `marker ${marker.severity}` });
            group.append(svgElement("title", {}, `Finding ${marker.number}: ${marker.title}, step ${marker.x}`));
            group.append(svgElement("path", { d: `M${at} 0V18L${flag} 22` }), svgElement("circle", { cx: flag, cy: 30, r: 8.5 }), svgElement("text", { x: flag, y: 34 }, marker.number));
            svg.append(group);
        }
        axis.replaceChildren(svg);
    }

    /** @param {{ row: number, column: number } | undefined} cell */
    function pointAt(cell) {
        cursor = cell;
        draw();
        if (!cell) {
            tooltip.hide();
            return "";
        }
        const columns = data.first.length;
        const index = cell.row * columns + cell.column;
        const [name, type] = report.tensors[data.rows[cell.row] ?? 0] ?? ["", ""];
        const first = data.first[cell.column];
        const last = data.last[cell.column];
        const steps = first === last ? `step ${first}` : `steps ${first} to ${last}`;
        const value = data.values[index] ?? null;
        const lines = [element("div", "tooltip-title name", name), element("div", "tooltip-line hint", `${type ? `${type}, ` : ""}${steps}`)];
        const line = element("div", "tooltip-line", `${data.title}: `);
        line.append(element("strong", "", value !== null ? formatNumber(value) : bad.has(index) ? "no finite element" : "not recorded"));
        lines.push(line);
        if (bad.has(index)) lines.push(element("div", "tooltip-line bad", value === null ? "NaN or Inf" : "NaN or Inf in the tensor; the number is of the finite elements"));
        const box = canvas.getBoundingClientRect();
        const base = outer.getBoundingClientRect();
        tooltip.show(box.left - base.left + ((cell.column + 0.5) * box.width) / columns, Math.max(0, box.top - base.top + (cell.row + 1) * rowHeight + 6), lines);
        return lines.map((one) => one.textContent).join(", ");
    }

    canvas.addEventListener("pointermove", (event) => {
        const box = canvas.getBoundingClientRect();
        const column = Math.floor(((event.clientX - box.left) / box.width) * data.first.length);
        const row = Math.floor((event.clientY - box.top) / rowHeight);
        if (column < 0 || row < 0 || column >= data.first.length || row >= data.rows.length) return;
        if (cursor?.row !== row || cursor.column !== column) pointAt({ row, column });
    });
    canvas.addEventListener("pointerleave", () => pointAt(undefined));
    canvas.addEventListener("blur", () => pointAt(undefined));
    canvas.addEventListener("keydown", (event) => {
        const move = /** @type {Record<string, [number, number]>} */ ({ ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -Infinity], End: [0, Infinity] })[event.key];
        if (!move) return;
        event.preventDefault();
        const from = cursor ?? { row: 0, column: 0 };
        const row = Math.min(data.rows.length - 1, Math.max(0, from.row + (cursor ? move[0] : 0)));
        const column = Math.min(data.first.length - 1, Math.max(0, from.column + (cursor ? move[1] : 0)));
        announce(pointAt({ row, column }));
        const top = row * rowHeight;
        if (top < frame.scrollTop || top + 3 * rowHeight > frame.scrollTop + frame.clientHeight) frame.scrollTop = top - frame.clientHeight / 2;
    });
    select.addEventListener("change", chooseQuantity);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    chooseQuantity();
    drawAtWidth(right, draw);
}
