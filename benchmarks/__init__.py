"""How fast the service answers, beside a bare Flask route on the same machine in the same minute."""
