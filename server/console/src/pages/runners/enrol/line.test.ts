import { describe, expect, it } from "vitest";
import { enrolLine, installLine, isPlain, isSound, parseLabels, serverAddress } from "./line";

const archive = { arch: "x86_64", sha256: "ab".repeat(32), name: "runner.tar.gz", bytes: 1 };

describe("the line to paste", () => {
  it("runs nothing before the checksum holds, and the token is no argument", () => {
    const line = installLine({ server: "https://server:7443", ownCertificate: true }, archive, "gantry_join_x");
    const steps = line.split(" && ");
    expect(steps[0]).toMatch(/^\(s=abab/);
    expect(steps[2]).toBe("curl -fsSk https://server:7443/install/$s/runner.tar.gz >$d/r.tgz");
    expect(steps[3]).toMatch(/\| sha256sum -c$/);
    expect(steps[5]).toBe("echo gantry_join_x | $d/gantry-runner/gantry-runner install --server https://server:7443 -)");
    expect(line).not.toContain("\n");
  });

  it("has no token for a fleet", () => {
    const line = installLine({ server: "https://server", ownCertificate: false }, archive);
    expect(line).toContain("curl -fsS https://server/");
    expect(line).not.toContain("echo gantry");
    expect(enrolLine("https://server")).toBe("gantry-runner enrol --server https://server - && gantry-runner run");
  });

  it("enrols and starts a runner that is installed, in containers on a Docker host", () => {
    expect(enrolLine("https://server", "gantry_join_x")).toBe("gantry-runner enrol --server https://server gantry_join_x && gantry-runner run");
    expect(enrolLine("https://server", "gantry_join_x", "docker")).toMatch(/ && gantry-runner run --backend docker$/);
  });

  it("has no text of the server that could be a command", () => {
    const made = (name: string, token = "gantry_join_x") => ({ id: "jtk_x", token, expires_at: "", archives: [{ ...archive, name }] });
    expect(isSound(made("gantry-runner-x86_64-linux.tar.gz"))).toBe(true);
    for (const name of ["a; rm -rf /", "$(id)", "a b", "a/../b", "a\nb", ""]) expect(isSound(made(name))).toBe(false);
    expect(isSound(made("a", "$(id)"))).toBe(false);
  });
});

describe("the server's address", () => {
  it("is a plain http or https origin", () => {
    expect(serverAddress(" https://server.example:7443/ ")).toBe("https://server.example:7443");
    expect(serverAddress("http://[::1]:7000")).toBe("http://[::1]:7000");
    for (const text of ["server:7443", "https://a/b", "https://$(id)", "https://a;b", "ftp://a", "https://:1:2", ""]) expect(serverAddress(text)).toBeUndefined();
  });

  it("tells who can read it", () => {
    expect(isPlain("http://192.168.1.2:7000")).toBe(true);
    expect(isPlain("http://localhost:7000")).toBe(false);
  });
});

describe("labels", () => {
  it("are one key and value a line", () => {
    expect(parseLabels("zone=office\n\n gpu = a=b ")).toEqual({ zone: "office", gpu: "a=b" });
    expect(parseLabels("")).toEqual({});
    for (const text of ["zone", "=x", "a=1\na=2"]) expect(parseLabels(text)).toBeUndefined();
    expect(parseLabels(Array.from({ length: 33 }, (_, at) => `k${at}=1`).join("\n"))).toBeUndefined();
  });
});
