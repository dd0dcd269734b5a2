import { useTranslation } from "react-i18next";
import type { Runner } from "@/api/schema";
import { told } from "@/i18n/told";
import { Part } from "./RunnerSheet";
import { placeName } from "./order";
import { UseButton } from "./UseButton";

/** The folders that a runner serves. Each can be chosen. */
export function Workspaces({ runner }: { runner: Runner }) {
  const { t } = useTranslation("runners");
  const workspaces = runner.sandboxes ?? [];
  return (
    <Part title={t("workspaces")}>
      {workspaces.length === 0 && <p className="text-dense wrap-anywhere text-muted">{runner.workspace || t("noWorkspace")}</p>}
      <ul>
        {workspaces.map((workspace, at) => (
          <li key={workspace.id} className="flex items-center gap-2 border-b border-line py-1.5 last:border-b-0">
            <div className="min-w-0 flex-1">
              <p className="text-dense font-medium wrap-anywhere">{placeName(runner.name, at === 0 ? undefined : workspace.name)}</p>
              <code className="block text-meta wrap-anywhere text-muted">{workspace.root}</code>
              {workspace.problem && <p className="text-meta wrap-anywhere text-bad">{told(workspace.problem)}</p>}
            </div>
            {workspaces.length > 1 && <UseButton runner={runner} {...(at === 0 ? {} : { workspace: workspace.name })} />}
          </li>
        ))}
      </ul>
    </Part>
  );
}
