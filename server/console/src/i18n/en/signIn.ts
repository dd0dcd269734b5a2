/** Words of signing in. */
export const signIn = {
  againTitle: "Sign in again",
  againWhy: "Your sign-in in this browser has ended. What you typed is still there.",
  askAdmin: "Ask an admin of your Gantry for an invitation.",
  askOperator: "If you run the server yourself, make a code on its machine:",
  code: "One-time code",
  codeHint: "It works once, for you alone.",
  hint: "Agents whose hands are on your own machines.",
  noCode: "No code?",
  signIn: "Sign in",
  title: "Sign in to Gantry",
  welcome: "Welcome to Gantry",
  welcomeHint: "Your link holds the code. Sign in, and this browser stays signed in.",
  wrongCode: "This code is wrong, was used already, or has expired. Ask for a new one.",
} as const;
