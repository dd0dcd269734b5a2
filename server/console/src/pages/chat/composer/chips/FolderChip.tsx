import { useQuery } from "@tanstack/react-query";
import { Folder } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { reasonOf } from "@/ui/failure";
import { Picker, type PickerOption } from "@/ui/Picker";
import { choose, useChoices } from "../choices";
import { folderEntries } from "../folder";
import { usePlace } from "../place";
import { Chip } from "./Chip";

/** The value of the option for the workspace itself. */
const ROOT = ".";

/** The folder of a chat that has not begun. It opens the list of the folders there. */
export function FolderChip() {
  const { t } = useTranslation("chat");
  const place = usePlace(undefined);
  const directory = useChoices().directory ?? "";
  const [open, setOpen] = useState(false);
  const online = place?.state === "online" && !place.runner?.pool;
  const folders = useQuery({
    queryKey: ["folders", "beneath", place?.value ?? "", directory],
    queryFn: () => folderEntries(place?.value, directory),
    enabled: open && online,
    staleTime: 0,
    retry: false,
  });
  if (!place || place.runner?.pool) return null;
  const beneath = (folders.data ?? []).filter((entry) => entry.kind === "directory" && !entry.is_replaced);
  const options = beneath.map((entry): PickerOption => {
    const path = directory ? `${directory}/${entry.name}` : entry.name;
    return { value: path, label: path };
  });
  if (directory) {
    options.unshift({ value: directory, label: directory });
    options.unshift({ value: directory.includes("/") ? directory.slice(0, directory.lastIndexOf("/")) : ROOT, label: t("inputFolderUp") });
  } else {
    options.unshift({ value: ROOT, label: t("inputFolderRoot") });
  }
  return (
    <Picker
      trigger={
        <Chip className="shrink-9999" disabled={!online} aria-label={t("inputFolderName", { folder: place.folder || t("inputFolderRoot") })}>
          <Folder aria-hidden className="size-4 shrink-0" />
          <span className="max-w-56 truncate">{place.folder || t("inputFolderRoot")}</span>
        </Chip>
      }
      label={t("inputFolders")}
      value={directory || ROOT}
      options={options}
      onOpen={setOpen}
      keepOpen
      onChoose={(value) => choose({ directory: value === ROOT ? undefined : value })}
      footer={folders.error ? t("inputFilesFailed", { runner: place.name, reason: reasonOf(folders.error) }) : t("inputFolderHint")}
    />
  );
}
