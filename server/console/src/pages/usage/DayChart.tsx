import "uplot/dist/uPlot.min.css";
import { useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import uPlot from "uplot";
import type { ModelUsage } from "@/api/schema";
import { localeOf } from "@/format/locale";
import { compact, dollars } from "@/format/number";
import { serverTime } from "@/state/clock";
import { everyDay } from "./days";

const HEIGHT_PX = 200;
const HALF_DAY_S = 43_200;

/** The cost of each day as bars, or its calls where nothing has a price. The table below says the same in numbers. */
export default function DayChart({ usage, days }: { usage: ModelUsage; days: number }) {
  const { t, i18n } = useTranslation("usage");
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const data = everyDay(usage, days, serverTime());
    const priced = usage.total.cost_micros > 0;
    const words = (value: number) => (priced ? dollars(value, i18n.language) : compact(value, i18n.language));
    const values = data.map((day) => (priced ? day.dollars : day.calls));
    const colour = (token: string) => getComputedStyle(element).getPropertyValue(token).trim();
    const axis = { stroke: () => resolved(element, "--muted"), grid: { stroke: () => resolved(element, "--line"), width: 1 }, ticks: { show: false }, font: `12px ${colour("--font-sans") || "system-ui"}` };
    const date = new Intl.DateTimeFormat(localeOf(i18n.language), { month: "short", day: "numeric", timeZone: "UTC" });
    const bars = uPlot.paths.bars?.({ size: [0.7, 40], radius: 0.2 });
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT_PX,
        legend: { show: false },
        cursor: { y: false, points: { show: false } },
        padding: [8, 0, 0, 0],
        tzDate: (second) => uPlot.tzDate(new Date(second * 1000), "UTC"),
        // Half a day at both ends: the bars of the first and the last day are whole.
        scales: { x: { time: true, range: (_, from, to) => [from - HALF_DAY_S, to + HALF_DAY_S] }, y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] } },
        axes: [
          { ...axis, size: 28, space: 72, grid: { show: false }, values: (_, at) => at.map((second) => date.format(second * 1000)) },
          { ...axis, size: 56, values: (_, at) => at.map(words) },
        ],
        series: [{}, { label: t("cost"), fill: () => resolved(element, "--accent"), width: 0, points: { show: false }, ...(bars ? { paths: bars } : {}) }],
      },
      [data.map((day) => day.at), values],
      element,
    );
    const resize = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT_PX }));
    resize.observe(element);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const repaint = () => plot.redraw();
    scheme.addEventListener("change", repaint);
    return () => {
      scheme.removeEventListener("change", repaint);
      resize.disconnect();
      plot.destroy();
    };
  }, [usage, days, i18n.language, t]);
  return <div ref={box} role="img" aria-label={t("chartLabel")} style={{ height: HEIGHT_PX }} />;
}

/** A token's colour in the theme of now: a canvas does not understand `light-dark()`. */
function resolved(element: HTMLElement, token: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${token})`;
  element.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}
