// Fills the page's empty charts from the data that the page carries. All else is there without it.

/** @returns {ReportData} */
function readData() {
    return JSON.parse(document.getElementById("report-data")?.textContent ?? "{}");
}

/**
 * @param {ReportData} data
 * @param {number} index of a finding
 * @returns {Marker}
 */
function markerOf(data, index) {
    const finding = /** @type {FindingData} */ (data.findings[index]);
    return { x: finding.first, number: String(index + 1), title: finding.title, severity: finding.severity };
}

/**
 * The element's number in its attribute data-`name`.
 * @param {HTMLElement} host
 * @param {string} name
 */
function indexOf(host, name) {
    return Number(host.dataset[name]);
}

/** @param {ReportData} data */
function fillPage(data) {
    const markers = data.findings.map((_, index) => markerOf(data, index));
    const namesWorkers = data.workers > 1;
    const seriesAt = (/** @type {number[]} */ indexes) => indexes.flatMap((index) => data.series[index] ?? []);
    const common = { lastStep: data.last_step, namesWorkers };

    for (const host of document.querySelectorAll("[data-chart]")) {
        if (!(host instanceof HTMLElement)) continue;
        const chart = data.charts[indexOf(host, "chart")];
        if (chart) lineChart(host, { ...common, title: chart.title, series: seriesAt(chart.series), markers, height: host.classList.contains("large") ? 320 : 220 });
    }
    for (const host of document.querySelectorAll("[data-finding]")) {
        if (!(host instanceof HTMLElement)) continue;
        const index = indexOf(host, "finding");
        const finding = data.findings[index];
        if (!finding) continue;
        // One chart for each statistic: a loss and a norm do not share an axis.
        const series = seriesAt(finding.series);
        const statistics = [...new Set(series.map((one) => one.statistic))];
        host.replaceChildren(...statistics.map((statistic) => {
            const chart = element("div", "subchart");
            chart.dataset["statistic"] = statistic;
            return chart;
        }));
        for (const chart of host.children) {
            if (!(chart instanceof HTMLElement)) continue;
            const statistic = chart.dataset["statistic"] ?? "";
            const some = series.filter((one) => one.statistic === statistic);
            const title = statistic !== "value" ? `Evidence: ${statisticInWords(statistic)}` : statistics.length > 1 ? "Beside it" : "Evidence";
            lineChart(chart, { ...common, title, series: some, markers: [markerOf(data, index)], height: statistics.length > 1 ? 180 : 240 });
        }
    }
    for (const host of document.querySelectorAll("[data-classes]")) {
        if (!(host instanceof HTMLElement)) continue;
        const classes = data.classes[indexOf(host, "classes")];
        if (!classes) continue;
        const accuracy = element("div", "subchart");
        const bars = element("div", "subchart");
        host.replaceChildren(bars, accuracy);
        classBars(bars, classes);
        lineChart(accuracy, { ...common, title: "Accuracy", series: seriesAt([classes.accuracy]), markers, height: 190, range: [0, 1] });
    }
    for (const host of document.querySelectorAll("[data-heat]")) if (host instanceof HTMLElement) heatMap(host, data, markers);
}

fillPage(readData());
document.documentElement.classList.add("drawn");
