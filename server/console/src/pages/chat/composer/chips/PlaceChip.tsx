import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { chooseRunner, runnersQuery } from "@/api/runners";
import { pinSession } from "@/api/sessions";
import type { Runner } from "@/api/schema";
import { ago } from "@/format/time";
import { isolationWords } from "@/i18n/isolation";
import { serverTime } from "@/state/clock";
import { Dot } from "@/ui/Dot";
import { Picker, type PickerOption } from "@/ui/Picker";
import { say, sayFailed } from "@/ui/Toast";
import { choose } from "../choices";
import { type ChatPlace, isolationOf, PLACE_DOTS, runnerState, shortened, usePlace } from "../place";
import { AS_USUAL, Chip, type Scope, ScopeSwitch } from "./Chip";

/** Where the tools of the chat run. It opens the list of runners. */
export function PlaceChip({ session, disabled }: { session: string | undefined; disabled?: boolean }) {
  const { t, i18n } = useTranslation("chat");
  const place = usePlace(session);
  const runners = useQuery(runnersQuery).data?.runners;
  const [scope, setScope] = useState<Scope>("chat");
  const pick = async (value: string) => {
    try {
      const usual = value === AS_USUAL;
      if (scope === "all" && !usual) {
        await chooseRunner(value);
        say(t("inputPlaceForAll", { place: value }));
      }
      // A choice for all chats is meant for this one too.
      if (session === undefined) choose({ runner: usual || scope === "all" ? undefined : value, directory: undefined });
      else if (scope === "chat" || place?.own) await pinSession(session, usual || scope === "all" ? undefined : value);
    } catch (error) {
      sayFailed(t("inputNotChosen"), error);
    }
  };
  const options = optionsOf(runners ?? [], i18n.language, {
    online: t("inputPlace_online"),
    away: (age) => (age ? t("inputAwaySince", { age }) : t("inputPlace_away")),
    locked: t("inputPlace_locked"),
    refused: t("inputPlace_refused"),
    isolation: (isolation) => t("inputIsolation", { isolation: isolationWords(isolation) }),
  });
  if (place?.own) options.unshift({ value: AS_USUAL, label: t("inputAsUsual") });
  return (
    <Picker
      trigger={
        <Chip disabled={disabled || place === undefined}>
          <span className="sr-only">{t("inputPlaceLabel")}</span>
          <PlaceWords place={place} withFolder={session !== undefined} />
        </Chip>
      }
      label={t("inputPlaces")}
      value={place?.value}
      options={options}
      onChoose={(value) => void pick(value)}
      header={<ScopeSwitch scope={scope} onChange={setScope} />}
      footer={t("inputPlaceFrom")}
      empty={t("inputNoRunners")}
    />
  );
}

/** A place in words: `● laptop · ~/src/app · isolation none`; on a phone the first of it, the list of places has the rest. */
export function PlaceWords({ place, withFolder = true }: { place: ChatPlace | null | undefined; withFolder?: boolean }) {
  const { t } = useTranslation("chat");
  if (place === undefined) return <span className="text-faint">…</span>;
  if (place === null) {
    return (
      <>
        <Dot state="off" />
        {t("inputNoRunner")}
      </>
    );
  }
  return (
    <>
      <Dot state={PLACE_DOTS[place.state]} />
      <span className="max-w-48 min-w-8 truncate font-medium text-ink">{place.value}</span>
      <span className={place.state === "online" ? "sr-only" : "shrink-0"}>{t(`inputPlace_${place.state}`)}</span>
      {withFolder && place.folder && (
        <span className="max-w-80 min-w-8 shrink-9999 truncate max-md:hidden">
          <span aria-hidden>· </span>
          {place.folder}
        </span>
      )}
      <span className="max-w-48 shrink-0 truncate max-md:hidden">
        <span aria-hidden>· </span>
        {t("inputIsolation", { isolation: isolationWords(place.isolation) })}
      </span>
    </>
  );
}

interface Words {
  online: string;
  away: (age: string | undefined) => string;
  locked: string;
  refused: string;
  isolation: (isolation: string) => string;
}

function optionsOf(runners: readonly Runner[], language: string, words: Words): PickerOption[] {
  const sorted = [...runners].sort((a, b) => Number(b.online) - Number(a.online) || a.name.localeCompare(b.name));
  return sorted.flatMap((runner): PickerOption[] => {
    const state = runnerState(runner);
    const meta = state === "away" ? words.away(runner.last_seen ? ago(runner.last_seen, serverTime(), language) : undefined) : words[state];
    // A pool makes the chat a sandbox of its own: there is no folder to choose.
    const workspaces = runner.pool ? [] : (runner.sandboxes ?? []);
    const base = { dot: PLACE_DOTS[state], meta, disabled: state === "locked" };
    const first = {
      ...base,
      value: runner.name,
      label: runner.name,
      note: noteOf(words, runner.pool ? "" : (workspaces[0]?.root ?? runner.workspace), isolationOf(runner, workspaces[0]?.name)),
    };
    const others = workspaces.slice(1).map((workspace) => ({
      ...base,
      value: `${runner.name}/${workspace.name}`,
      label: `${runner.name}/${workspace.name}`,
      note: noteOf(words, workspace.root, isolationOf(runner, workspace.name)),
    }));
    return [first, ...others];
  });
}

function noteOf(words: Words, root: string, isolation: string): string {
  return [shortened(root), words.isolation(isolation)].filter((part) => part !== "").join(" · ");
}
