-- The models of a runner's own model server, as it reported them last (JSON), and the reason why they are not known
-- now, for people. They count while the runner has the feature "models".
ALTER TABLE runners ADD COLUMN models TEXT COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE runners ADD COLUMN models_problem TEXT COLLATE "C" NOT NULL DEFAULT '';
