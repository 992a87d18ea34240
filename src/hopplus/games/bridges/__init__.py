"""Games as environments of other libraries; each bridge needs the extra of its name."""
