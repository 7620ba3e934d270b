class Trawl < Formula
  desc "Crawl websites politely and lose nothing, on one machine or as a fleet"
  homepage "@repository@"
  url "@repository@/releases/download/v@version@/@file@"
  version "@version@"
  sha256 "@sha256@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on arch: :@architecture@
  depends_on :linux

  def install
    bin.install "trawl"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/trawl.bash" => "trawl"
    zsh_completion.install "completions/_trawl"
    fish_completion.install "completions/trawl.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/trawl -V")
    system bin/"trawl", "demo", "--quiet"
    assert_path_exists testpath/"demo.jsonl"
  end
end
