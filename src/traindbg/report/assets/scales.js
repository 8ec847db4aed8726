// Numbers to pixels, to words and to colours.

/**
 * A number as people read it: five digits at most.
 * @param {number | string | null | undefined} value
 * @returns {string}
 */
function formatNumber(value) {
    if (value === null || value === undefined) return "–";
    if (typeof value === "string") return value === "nan" ? "NaN" : value === "inf" ? "Inf" : "−Inf";
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e6 || size < 1e-4) {
        const [digits, exponent] = value.toExponential(3).split("e");
        return `${Number(digits)}e${Number(exponent)}`.replaceAll("-", "−");
    }
    return String(Number(value.toPrecision(5))).replace("-", "−");
}

/**
 * @typedef {object} Scale
 * @property {(value: number) => number} place value to pixels
 * @property {number[]} ticks
 */

/**
 * About `count` round numbers between `low` and `high`.
 * @param {number} low
 * @param {number} high
 * @param {number} count
 * @returns {number[]}
 */
function roundTicks(low, high, count) {
    const raw = (high - low) / Math.max(1, count);
    if (!(raw > 0) || !Number.isFinite(raw)) return [low];
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999) ?? 10);
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) ticks.push(Number((i * step).toPrecision(12)));
    return ticks;
}

/**
 * @param {number} low
 * @param {number} high
 * @param {number} from pixel of `low`
 * @param {number} to pixel of `high`
 * @param {number} count of ticks, about
 * @returns {Scale}
 */
function linearScale(low, high, from, to, count) {
    const factor = high > low ? (to - from) / (high - low) : 0;
    return { place: (value) => from + (value - low) * factor, ticks: roundTicks(low, high, count) };
}

/**
 * @param {number} low above 0
 * @param {number} high
 * @param {number} from
 * @param {number} to
 * @param {number} count
 * @returns {Scale}
 */
function logScale(low, high, from, to, count) {
    const a = Math.log10(low);
    const b = Math.log10(high);
    const factor = b > a ? (to - from) / (b - a) : 0;
    const most = 2 * Math.max(2, count);  // more labels than that would touch each other
    const powersOfTen = (/** @type {number} */ every) => {
        const powers = [];
        for (let power = Math.ceil(a / every - 1e-9) * every; power <= b + 1e-9; power += every) powers.push(Number(`1e${power}`));
        return powers;
    };
    let every = Math.max(1, Math.ceil((b - a) / Math.max(2, count)));
    let ticks = powersOfTen(every);
    while (ticks.length < 3 && every > 1 && (b - a) / (every - 1) <= most) ticks = powersOfTen(--every);
    // Less than a decade or two: round numbers between the powers of ten.
    if (ticks.length < 3 && every === 1) {
        for (const digits of [[1, 2, 5], [1, 3]]) {
            const between = [];
            for (let power = Math.floor(a); power <= Math.ceil(b); ++power)
                for (const digit of digits) between.push(Number((digit * 10 ** power).toPrecision(12)));
            const inside = between.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
            if (inside.length > most) continue;
            ticks = inside;
            break;
        }
        for (let wanted = count; ticks.length < 2 && wanted <= 4 * count; wanted *= 2)
            ticks = roundTicks(low, high, wanted).filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
    }
    return { place: (value) => from + (Math.log10(value) - a) * factor, ticks };
}

// Ten steps of viridis: even to the eye, in grey, and for the colour-blind.
const kViridis = /** @type {const} */ ([
    [68, 1, 84], [72, 40, 120], [62, 73, 137], [49, 104, 142], [38, 130, 142],
    [31, 158, 137], [53, 183, 121], [110, 206, 88], [181, 222, 43], [253, 231, 37],
]);

/**
 * @param {number} share 0 to 1
 * @returns {string}
 */
function heatColour(share) {
    const place = Math.min(1, Math.max(0, share)) * (kViridis.length - 1);
    const index = Math.min(kViridis.length - 2, Math.floor(place));
    const low = kViridis[index] ?? kViridis[0];
    const high = kViridis[index + 1] ?? kViridis[0];
    const part = place - index;
    const mix = (/** @type {number} */ a, /** @type {number} */ b) => Math.round(a + (b - a) * part);
    return `rgb(${mix(low[0], high[0])} ${mix(low[1], high[1])} ${mix(low[2], high[2])})`;
}
