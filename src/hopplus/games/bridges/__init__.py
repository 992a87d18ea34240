"""Games as environments of other people's libraries; each bridge needs the extra of its name."""
