package browsertest

// checks runs in a page and returns what is wrong with it: sideways scroll,
// headings, landmarks, names of controls, references, small targets.
const checks = `(() => {
	const wrong = [], all = s => [...document.querySelectorAll(s)];
	all("details").forEach(d => d.open = true);
	const over = document.documentElement.scrollWidth - innerWidth;
	if (over > 0) {
		const wide = all("body *").filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".vh,.skip")).slice(0, 3).map(e => e.outerHTML.slice(0, 80));
		wrong.push("scrolls sideways by " + over + " px: " + wide.join(" | "));
	}
	const shown = e => e.checkVisibility();
	const levels = all("h1,h2,h3,h4").filter(shown).map(h => Number(h.tagName[1]));
	if (levels.filter(l => l === 1).length !== 1) wrong.push("h1: " + levels.filter(l => l === 1).length);
	levels.reduce((before, l) => { if (l > before + 1) wrong.push("heading jumps from " + before + " to " + l); return l; }, 0);
	if (all("main").length !== 1) wrong.push("main: " + all("main").length);
	if (!document.documentElement.lang) wrong.push("no lang");
	const name = e => (e.getAttribute("aria-label") || (e.getAttribute("aria-labelledby") || "").split(/\s+/).map(i => document.getElementById(i)?.textContent).join("") || e.textContent).trim();
	for (const e of all("nav,form,[role=region]")) if (!e.getAttribute("aria-label") && !e.getAttribute("aria-labelledby") && !e.matches(".panel")) wrong.push("no label: " + e.outerHTML.slice(0, 80));
	for (const e of all("button,a[href],summary")) if (!name(e)) wrong.push("no name: " + e.outerHTML.slice(0, 80));
	for (const e of all("input:not([type=hidden]),select,textarea")) if (!e.labels.length) wrong.push("no label: " + e.outerHTML.slice(0, 80));
	for (const e of all("svg")) if (e.getAttribute("aria-hidden") !== "true" && !e.getAttribute("aria-label")) wrong.push("picture without words");
	for (const e of all("[aria-labelledby],[aria-describedby]")) for (const a of ["aria-labelledby", "aria-describedby"]) for (const i of (e.getAttribute(a) || "").split(/\s+/)) if (i && !document.getElementById(i)) wrong.push(a + " points nowhere: " + i);
	const ids = all("[id]").map(e => e.id);
	for (const i of new Set(ids)) if (ids.filter(x => x === i).length > 1) wrong.push("id twice: " + i);
	for (const e of all("dl > *")) if (e.tagName !== "DIV") wrong.push("dl holds " + e.tagName);
	for (const e of all("[style],style,script:not([src])")) wrong.push("inline: " + e.outerHTML.slice(0, 60));
	for (const e of all("*")) for (const a of e.attributes) if (a.name.startsWith("on")) wrong.push("handler: " + a.name);
	if (matchMedia("(pointer: coarse)").matches) for (const e of all("button,.btn,.nav a,.reach label")) {
		const r = e.getBoundingClientRect();
		if (shown(e) && r.width && (r.height < 44 || r.width < 40)) wrong.push("small target " + Math.round(r.width) + "x" + Math.round(r.height) + ": " + e.textContent.trim().slice(0, 30));
	}
	const pair = document.querySelector(".pair");
	if (pair && shown(pair)) {
		const [no, yes] = [...pair.querySelectorAll(".btn")].map(e => e.getBoundingClientRect());
		if (no.right > yes.left || yes.left - no.right < 11 || Math.abs(no.width - yes.width) > 1 || Math.abs(no.height - yes.height) > 1) wrong.push("yes and no do not weigh the same");
		if (!all(".pair .btn").map(e => e.dataset.answer).join().startsWith("deny,allow")) wrong.push("Deny is not on the left");
	}
	return wrong;
})()`

// Wrong returns what is wrong with the page as it stands: sideways scroll,
// headings, landmarks, names of controls, references, small targets.
func (b *Tab) Wrong() []string {
	b.T.Helper()
	return Eval[[]string](b, checks)
}

// Check fails the test for everything that is wrong with the page, which it
// calls name.
func (b *Tab) Check(name string) {
	b.T.Helper()
	for _, w := range b.Wrong() {
		b.T.Errorf("%s: %s", name, w)
	}
}
