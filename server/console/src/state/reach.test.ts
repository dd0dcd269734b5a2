import { expect, it } from "vitest";
import { reachOf } from "./reach";

it("tells from an address who reaches it", () => {
  for (const host of ["127.0.0.1:7000", "localhost:7000", "app.localhost", "[::1]:7000"]) expect(reachOf(`http://${host}`)).toBe("machine");
  for (const host of ["10.1.2.3", "192.168.1.5:7443", "172.31.0.1", "100.64.0.1", "[fd00::1]", "[fe80::1]", "box", "box.local"]) expect(reachOf(`https://${host}`)).toBe("network");
  for (const host of ["gantry.example", "172.32.0.1", "100.128.0.1", "8.8.8.8", "[2001:db8::1]", "10.example.com"]) expect(reachOf(`https://${host}`)).toBe("any");
});
