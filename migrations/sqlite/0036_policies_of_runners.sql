-- The most freedom of an agent by the policy of the runner's machine (plan, ask, auto or full), as the runner reported it
-- last; absent where the machine has no policy.
ALTER TABLE runners ADD COLUMN ceiling TEXT;
