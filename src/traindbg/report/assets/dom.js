// Elements without markup: whatever a training named reaches the page as text content, never as HTML.

/**
 * A new HTML element.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {string} [className]
 * @param {string} [text]
 * @returns {HTMLElementTagNameMap[Name]}
 */
function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
}

/**
 * A new SVG element.
 * @template {keyof SVGElementTagNameMap} Name
 * @param {Name} name
 * @param {Record<string, string | number>} [attributes]
 * @param {string} [text]
 * @returns {SVGElementTagNameMap[Name]}
 */
function svgElement(name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes ?? {})) made.setAttribute(key, String(value));
    if (text !== undefined) made.textContent = text;
    return made;
}

/**
 * Says something to those who hear the page.
 * @param {string} text
 */
function announce(text) {
    const announcer = document.getElementById("announcer");
    if (announcer) announcer.textContent = text;
}

/**
 * Calls `draw` now and whenever the element's width changes.
 * @param {HTMLElement} host
 * @param {(width: number) => void} draw
 */
function drawAtWidth(host, draw) {
    let drawn = 0;
    const update = () => {
        const width = Math.floor(host.clientWidth);
        if (width === drawn || width === 0) return;
        drawn = width;
        draw(width);
    };
    new ResizeObserver(update).observe(host);
    update();
}

/**
 * A box with lines of text that follows the pointer within `host`, which must be positioned.
 * @param {HTMLElement} host
 */
function makeTooltip(host) {
    const box = element("div", "tooltip");
    box.hidden = true;
    host.append(box);
    return {
        /**
         * @param {number} x of the thing that is explained, in pixels of `host`
         * @param {number} y
         * @param {Node[]} content
         */
        show(x, y, content) {
            box.replaceChildren(...content);
            box.hidden = false;
            const room = host.clientWidth;
            const width = box.offsetWidth;
            const right = x + 14 + width <= room;
            box.style.left = `${Math.max(0, right ? x + 14 : x - 14 - width)}px`;
            box.style.top = `${Math.max(0, y)}px`;
        },
        hide() {
            box.hidden = true;
        },
    };
}
