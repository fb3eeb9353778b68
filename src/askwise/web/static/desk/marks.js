// Marks of settings on charts: asked about (full, hollow, diamond) and recommended (a star).
import { colour } from "./colours.js";

/** Draw a setting that was asked about; `verdict` is good, bad or undecided. */
export function asked(ctx, x, y, verdict, opacity, scale) {
  ctx.save();
  ctx.globalAlpha = opacity;
  ctx.lineWidth = 1.2 * scale;
  ctx.beginPath();
  if (verdict === "undecided") {
    const r = 4 * scale;
    ctx.moveTo(x, y - r); ctx.lineTo(x + r, y); ctx.lineTo(x, y + r); ctx.lineTo(x - r, y); ctx.closePath();
  } else {
    ctx.arc(x, y, 3.4 * scale, 0, 2 * Math.PI);
  }
  ctx.fillStyle = { good: colour("--ink"), bad: colour("--panel"), undecided: colour("--muted") }[verdict];
  ctx.strokeStyle = verdict === "bad" ? colour("--ink") : colour("--panel");
  ctx.fill();
  ctx.stroke();
  ctx.restore();
}

/** Draw the recommended setting. */
export function star(ctx, x, y, scale) {
  ctx.save();
  ctx.beginPath();
  for (let k = 0; k < 10; k++) {
    const r = (k % 2 ? 3.6 : 8.5) * scale;
    const turn = (k * Math.PI) / 5 - Math.PI / 2;
    ctx.lineTo(x + r * Math.cos(turn), y + r * Math.sin(turn));
  }
  ctx.closePath();
  ctx.fillStyle = colour("--mark");
  ctx.strokeStyle = colour("--panel");
  ctx.lineWidth = 1.2 * scale;
  ctx.fill();
  ctx.stroke();
  ctx.restore();
}
