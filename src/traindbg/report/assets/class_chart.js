// Labels beside predictions, class by class.

/**
 * @param {HTMLElement} host emptied and filled
 * @param {ClassesData} data
 */
function classBars(host, data) {
    host.replaceChildren();
    const header = element("div", "chart-header");
    header.append(element("h3", "chart-title", `Labels and predictions (${data.mode})`));
    const shown = data.rows.length < data.classes ? `, the ${data.rows.length} of ${data.classes} classes that differ most` : "";
    const note = element("p", "note", `${data.samples.toLocaleString("en")} samples, steps ${data.first} to ${data.last}${shown}`);
    const plot = element("div", "plot");
    const legend = element("ul", "legend");
    for (const [name, text] of [["labels", "was the label"], ["predictions", "was predicted"], ["hits", "predicted rightly"]]) {
        const item = element("li", "hint");
        item.append(element("span", `swatch ${name}`), element("span", "", text));
        legend.append(item);
    }
    const details = element("details", "numbers");
    details.append(element("summary", "", "Numbers"), classTable(data));
    host.append(header, note, plot, legend, details);
    const tooltip = makeTooltip(plot);
    const most = data.rows.reduce((a, [, labels, predictions]) => Math.max(a, labels, predictions), 1);
    const total = Math.max(1, data.samples);

    drawAtWidth(plot, (width) => {
        plot.querySelector("svg")?.remove();
        const height = 200;
        const y = linearScale(0, (100 * most) / total, height - 34, 8, 4);
        const left = 14 + 7 * y.ticks.reduce((a, tick) => Math.max(a, formatNumber(tick).length + 2), 3);
        const svg = svgElement("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Bars of labels and predictions per class; the numbers are in the table below." });
        for (const tick of y.ticks) {
            svg.append(svgElement("line", { x1: left, x2: width - 6, y1: y.place(tick), y2: y.place(tick), class: "grid" }));
            svg.append(svgElement("text", { x: left - 6, y: y.place(tick) + 4, class: "tick end" }, `${formatNumber(tick)} %`));
        }
        const slot = (width - left - 6) / Math.max(1, data.rows.length);
        const bar = Math.max(1, Math.min(26, slot * 0.4));
        const every = Math.ceil(24 / slot);
        data.rows.forEach(([index, labels, predictions, hits], place) => {
            const middle = left + slot * (place + 0.5);
            const rect = (/** @type {number} */ at, /** @type {number} */ count, /** @type {string} */ name) => {
                const top = y.place((100 * count) / total);
                svg.append(svgElement("rect", { x: at, y: top, width: bar, height: Math.max(0, height - 34 - top), class: `bar ${name}` }));
            };
            rect(middle - bar - 0.5, labels, "labels");
            rect(middle + 0.5, predictions, "predictions");
            rect(middle + 0.5, hits, "hits");
            if (place % every === 0) svg.append(svgElement("text", { x: middle, y: height - 20, class: "tick middle" }, String(index)));
            const area = svgElement("rect", { x: middle - slot / 2, y: 8, width: slot, height: height - 42, class: "area" });
            area.addEventListener("pointerenter", () =>
                tooltip.show(middle, 8, [
                    element("div", "tooltip-title", `class ${index}`),
                    element("div", "tooltip-line", `label ${labels} times (${formatNumber((100 * labels) / total)} %)`),
                    element("div", "tooltip-line", `predicted ${predictions} times (${formatNumber((100 * predictions) / total)} %)`),
                    element("div", "tooltip-line", `found ${hits} of ${labels}`),
                ]));
            area.addEventListener("pointerleave", () => tooltip.hide());
            svg.append(area);
        });
        svg.append(svgElement("text", { x: (left + width) / 2, y: height - 4, class: "tick middle" }, "class"));
        plot.prepend(svg);
    });
}

/**
 * @param {ClassesData} data
 * @returns {HTMLTableElement}
 */
function classTable(data) {
    const table = element("table");
    const head = element("tr");
    for (const title of ["Class", "Labels", "Predictions", "Right", "Recall"]) {
        const cell = element("th", title === "Class" ? "" : "number", title);
        cell.scope = "col";
        head.append(cell);
    }
    const thead = element("thead");
    thead.append(head);
    const body = element("tbody");
    for (const [index, labels, predictions, hits] of data.rows) {
        const row = element("tr");
        const name = element("th", "", String(index));
        name.scope = "row";
        row.append(name);
        const recall = labels ? `${((100 * hits) / labels).toFixed(1)} %` : "–";
        for (const text of [labels, predictions, hits, recall]) row.append(element("td", "number", String(text)));
        body.append(row);
    }
    table.append(thead, body);
    return table;
}
