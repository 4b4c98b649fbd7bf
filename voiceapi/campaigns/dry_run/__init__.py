"""The dry run of a campaign: what would happen, with nobody called and nothing stored."""
