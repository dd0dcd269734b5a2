import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { queries } from "./api/query";
import { router } from "./router";
import { Toasts } from "./ui/Toast";
import { TooltipProvider } from "./ui/Tooltip";

/** The whole console. */
export function App() {
  return (
    <QueryClientProvider client={queries}>
      <TooltipProvider delayDuration={400}>
        <RouterProvider router={router} />
        <Toasts />
      </TooltipProvider>
    </QueryClientProvider>
  );
}
